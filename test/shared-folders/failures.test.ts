// Shared folders: what is refused at the start, large files, upstreams that forget.
import { mkdir, open, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { expect, onTestFinished, test, vi } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { openFolder } from '../../src/shared-folders/folder.ts';
import { writePendingFile } from '../../src/shared-folders/pending-file.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { refuse } from '../../src/protocol/job-api.ts';
import { pngOf } from '../support/clients/client-helpers.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { fill, tempFolder } from '../support/graphs/v1-folders.ts';
import { loading } from '../support/graphs/workflows.ts';
import { filesIn, run, share, textOf } from './open.ts';
import { growthMb } from '../support/processes/resident-memory.ts';

vi.setConfig({ testTimeout: 120_000 });

const MEBIBYTE = 1024 * 1024;
const NO_FILE = {
  user: 'u',
  type: 'output',
  subfolder: '',
  hash: null,
  sizeBytes: 4,
  contentType: 'text/plain',
  modifiedAtMs: 1000,
} as const;

test.each(['--input-directory', '--output-directory'])(
  '%s through which the data directory could be reached is refused',
  async (flag) => {
    const root = await tempFolder('root');
    await mkdir(join(root, 'elsewhere'));
    await symlink(root, join(root, 'elsewhere/link'));
    const refusal = (folder: string, dataDir: string) =>
      parseConfig([flag, folder, '--data-dir', dataDir], {});
    for (const folder of [root, `${root}/data`, `${root}/data/blobs`, `${root}/elsewhere/link`]) {
      const text = expect.stringContaining(`option '${flag}' and --data-dir must not lie in`);
      expect(refusal(folder, `${root}/data`)).toEqual({ kind: 'exit', code: 2, text });
    }
    expect(refusal(`${root}/database`, `${root}/data`)).toMatchObject({ kind: 'config' });
  },
);

test('a file where the folder should be is refused', async () => {
  const root = await tempFolder('root');
  await fill(root, { plain: 'x' });
  const parsed = parseConfig(['--input-directory', join(root, 'plain')], {});
  expect(parsed).toMatchObject({ kind: 'exit', code: 2 });
});

test('a dropped file of 150 MB is not held in memory', async () => {
  const { server, input } = await share();
  const large = await open(join(input, 'large.bin'), 'w');
  await large.truncate(150 * MEBIBYTE);
  await large.close();
  let bytes = 0;
  const grown = await growthMb(server, async () => {
    const answer = await fetch(`${server.url}/view?filename=large.bin&type=input`);
    for await (const chunk of answer.body ?? []) bytes += (chunk as Uint8Array).length;
  });
  expect(bytes).toBe(150 * MEBIBYTE);
  expect(grown).toBeLessThan(100);
});

test('an upstream that has forgotten a file gets it once more from the folder', async () => {
  const behind = await startHoldover({ upstream: 'embedded' });
  onTestFinished(() => behind.dispose());
  const args = ['--upstream', behind.url];
  const { server, input, output } = await share({}, { upstream: 'embedded', args });
  await fill(input, { 'cat.png': await pngOf() });
  await run(server, loading('cat.png'));
  await behind.kill9();
  const forgetful = await startHoldover({ upstream: 'embedded', port: behind.port });
  onTestFinished(() => forgetful.dispose());
  await run(server, loading('cat.png', 'again'));
  expect(await filesIn(output)).toEqual(['again_00001_.png', 'loaded_00001_.png']);
});

test('a name that another program takes in the last moment stays its own', async () => {
  const root = await tempFolder('output');
  const folder = await openFolder(root);
  const content = { tag: 't', sizeBytes: 4, modifiedAtMs: 1000, existing: 'keep' } as const;
  const name = { subfolder: 'day', filename: 'a.txt' };
  const source = async function* () {
    yield Buffer.from('ou');
    await fill(root, { 'day/a.txt': 'theirs' });
    yield Buffer.from('rs');
  };
  expect(await folder.place(name, { ...content, source: Readable.from(source()) })).toBe('taken');
  expect(await filesIn(root)).toEqual(['day/a.txt']);
  expect(await textOf(root, 'day/a.txt')).toBe('theirs');
});

test('a folder that is gone is not made anew: another disk may be below its name', async () => {
  const root = await tempFolder('output');
  const folder = await openFolder(root);
  await rename(root, `${root}-away`);
  const content = { tag: 't', sizeBytes: 4, modifiedAtMs: 1000, existing: 'keep' } as const;
  const place = (subfolder: string) =>
    folder.place({ subfolder, filename: 'a' }, { ...content, source: Readable.from(['ours']) });
  await expect(place('')).rejects.toThrow('is not a plain folder');
  await expect(place('day')).rejects.toThrow('is not a plain folder');
  await rename(`${root}-away`, root);
  expect(await place('day')).toBe('placed');
});

test('what is left of a copy goes when its file is gone before the next attempt', async () => {
  const root = await tempFolder('output');
  const folder = await openFolder(root);
  const row = { ...NO_FILE, filename: 'a.txt', assetId: 'asset' };
  const content = { tag: row.assetId, sizeBytes: 4, modifiedAtMs: 1000, existing: 'keep' } as const;
  const source = new PassThrough();
  void folder.place(row, { ...content, source }).catch(() => {});
  await expect.poll(() => filesIn(root)).toEqual([expect.stringMatching(/^\.holdover-.*\.part$/)]);
  const jobs = { content: async () => refuse(404, 'not_found', 'gone') } as never;
  const services = { folder, jobs, log: silentLogger(), user: 'u' };
  await writePendingFile(services, { row, rule: 'keep-both' }, new AbortController().signal);
  expect(await filesIn(root)).toEqual([]);
  source.destroy(new Error('killed'));
});

test('a file that breaks off is not there at all', async () => {
  const root = await tempFolder('output');
  const folder = await openFolder(root);
  const content = { tag: 't', sizeBytes: 10, modifiedAtMs: 1000, existing: 'replace' } as const;
  const source = Readable.from([Buffer.from('half')]);
  const placed = folder.place({ subfolder: '', filename: 'a.txt' }, { ...content, source });
  await expect(placed).rejects.toThrow('is incomplete');
  expect(await filesIn(root)).toEqual([]);
});
