// The v1 names of the outputs of one job, also when two processes have run it.
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { FileRow, FileStore } from '../../../src/ledger/ledger.ts';
import { OutputNames } from '../../../src/prompts/follow/output-names.ts';
import type { LivePrompt } from '../../../src/prompts/live-prompt.ts';
import { type Content, type Result, ok, refuse } from '../../../src/protocol/job-api.ts';
import type { Asset, Job, Output } from '../../../src/protocol/v2.ts';
import { fakePorts } from '../fake-ports.ts';

function open(mayRerunJobs: boolean) {
  const rows = new Map<string, FileRow>();
  const rowsByAsset = new Map<string, FileRow>();
  const assets = new Set<string>();
  const files = {
    byAsset: async (_user: string, id: string) => rowsByAsset.get(id),
    get: async (_user: string, { filename }: { filename: string }) => rows.get(filename),
    claim: async (row: FileRow) =>
      !rows.has(row.filename) &&
      !!rows.set(row.filename, row) &&
      !!rowsByAsset.set(row.assetId, row),
    remove: async (_user: string, { filename }: { filename: string }) => rows.delete(filename),
  } as unknown as FileStore;
  const asset = async (_caller: unknown, id: string): Promise<Result<Asset>> =>
    assets.has(id) ? ok({ id } as Asset) : refuse(404, 'not_found', 'no such asset');
  const graph = {
    '9': { class_type: 'SaveImage', inputs: {} },
    '8': { class_type: 'SaveText', inputs: {} },
  };
  const prompt = { caller: { user: 'u' }, createdAtMs: 1, graph } as unknown as LivePrompt;
  const read: string[] = [];
  const content = async (_caller: unknown, id: string): Promise<Result<Content>> => {
    read.push(id);
    const stream = Readable.from([Buffer.from(`the text of ${id}`)]);
    return ok({ kind: 'bytes', stream, contentType: 'text/plain', totalBytes: 9 });
  };
  const ports = fakePorts({
    jobs: { api: { asset, content } },
    records: { files },
    policy: { traits: { isService: false, mayRerunJobs } },
  });
  return { names: new OutputNames(prompt, ports), rows, assets, read };
}

const output = (id: string, name: string): Output => ({ id, name, node_id: '9' }) as Output;

test('an output of an earlier run, whose file was removed, gets no name', async () => {
  const { names, rows, assets } = open(true);
  assets.add('second');
  expect(await names.name(output('first', 'a_00001_.png'))).toBeUndefined();
  expect(await names.name(output('second', 'a_00002_.png'))).toMatchObject({
    filename: 'a_00002_.png',
  });
  expect([...rows.keys()]).toEqual(['a_00002_.png']);
});

test('a saved text is read once from its file', async () => {
  const { names, read } = open(false);
  const saved = { ...output('saved', 'note_00001.json'), node_id: '8' };
  const outputs = [saved, output('other', 'note.txt')];
  const named = [await names.nameAll({ outputs } as unknown as Job), await names.name(saved)];
  expect(named).toMatchObject([
    new Map([
      ['saved', { filename: 'note_00001.json', text: 'the text of saved' }],
      ['other', { filename: 'note.txt' }],
    ]),
    { text: 'the text of saved' },
  ]);
  expect(read).toEqual(['saved']);
});

test('a service is not asked for each output', async () => {
  const { names, rows } = open(false);
  await names.name(output('first', 'a_00001_.png'));
  expect([...rows.keys()]).toEqual(['a_00001_.png']);
});

test('a job that is run again leaves one name for each file, in time with their number', async () => {
  const { names, rows } = open(false);
  const count = 60_000;
  const outputs = Array.from({ length: count }, (_, i) => output(`run 1, ${i}`, `a_${i}.png`));
  for (const each of outputs) await names.name(each);
  await names.removeReplaced({ outputs } as unknown as Job);
  expect(rows.size).toBe(count);
  const again = { ...outputs[1], id: 'run 2, 1' };
  await names.removeReplaced({ outputs: [outputs[0], again] } as unknown as Job);
  expect(rows.size).toBe(count - 1);
  expect(rows.has('a_1.png')).toBe(false);
});
