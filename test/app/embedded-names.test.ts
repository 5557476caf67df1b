import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { restoreEmbeddedNames } from '../../src/app/embedded-names.ts';
import type { PromptRow } from '../../src/ledger/ledger.ts';
import { type PngChunk, textChunk, writePng } from '../../src/nodes/codecs/png-chunks.ts';
import { type ByteRange, type ContentBytes, type JobApi, ok } from '../../src/protocol/job-api.ts';

const CALLER = { user: 'alice' };
const MiB = 1024 * 1024;
const FOLDER = 'holdover-0123456789abcdef';
const STORED = `{"3": {"inputs": {"image": "${FOLDER}/lab%20up.png", "seed": 18446744073709551615}}}`;
const SHOWN = STORED.replace(`${FOLDER}/lab%20up.png`, 'lab up.png [input]').padEnd(STORED.length);

/** As comfy-api-proxy names an output. */
function idOf(name: string): string {
  const payload = Buffer.from(JSON.stringify({ f: name, s: '', t: 'output', j: 'job-1' }));
  return `${payload.toString('base64url')}.signature`;
}

function fileWith(prompt: string, before: readonly PngChunk[] = []): Buffer {
  return writePng([
    { type: 'IHDR', data: Buffer.alloc(13, 1) },
    ...before,
    textChunk('tEXt', 'prompt', prompt),
    { type: 'IDAT', data: PIXELS },
    { type: 'IEND', data: Buffer.alloc(0) },
  ]);
}

const PIXELS = randomBytes(3000);
const FILE = fileWith(STORED);
const WANTED = fileWith(SHOWN);

type Service = {
  readonly bytes: Buffer;
  readonly pieceBytes?: number;
  readonly ranges?: 'ignored';
};

/** A service that has one file, and what is asked of it. */
function open({ bytes, pieceBytes = 500, ranges }: Service) {
  const asked: (ByteRange | undefined)[] = [];
  const streams: Readable[] = [];
  const users: string[] = [];
  const jobs = {
    async content(_caller, _assetId, range) {
      asked.push(range);
      const start = ranges ? 0 : (range?.start ?? 0);
      const end = ranges ? bytes.length - 1 : Math.min(range?.end ?? Infinity, bytes.length - 1);
      const part = bytes.subarray(start, end + 1);
      const pieces = function* () {
        for (let at = 0; at < part.length; at += pieceBytes) {
          yield part.subarray(at, at + pieceBytes);
        }
      };
      const stream = Readable.from(pieces(), { objectMode: false });
      streams.push(stream);
      const partly = range && !ranges ? { range: { start, end } } : {};
      const facts = { contentType: 'image/png', totalBytes: bytes.length, ...partly };
      return ok({ kind: 'bytes', stream, ...facts });
    },
  } as Partial<JobApi> as JobApi;
  const graph = { '3': { inputs: { image: 'lab up.png [input]', seed: 1, model: ['1', 0] } } };
  const restoring = restoreEmbeddedNames({
    jobs,
    prompts: {
      async findByJob(user, jobId) {
        users.push(user);
        expect(jobId).toBe('job-1');
        return { graphJson: JSON.stringify(graph) } as PromptRow;
      },
    },
  });
  async function read(range?: ByteRange, name = 'made_00001_.png') {
    const answer = await restoring.content(CALLER, idOf(name), range);
    if (!answer.ok) return answer.error.status;
    const content = answer.value as ContentBytes;
    return { ...content, bytes: await buffer(content.stream) };
  }
  return { read, restoring, asked, streams, users };
}

describe('a file from behind comfy-api-proxy', () => {
  test.each([1, 7, 33, 500, 10_000])(
    'names its uploads, in pieces of %i bytes',
    async (pieceBytes) => {
      const { read, users } = open({ bytes: FILE, pieceBytes });
      expect(await read()).toMatchObject({ bytes: WANTED, totalBytes: FILE.length });
      expect(users).toEqual(['alice']);
    },
  );

  test('has the same bytes in every part', async () => {
    const { read } = open({ bytes: FILE, pieceBytes: 64 });
    const promptEnd = FILE.indexOf('IDAT');
    for (let start = 0; start <= promptEnd; start += 5) {
      for (const end of [start, start + 40, promptEnd + 1, Infinity]) {
        const last = Math.min(end, FILE.length - 1);
        expect(await read({ start, end })).toMatchObject({
          bytes: WANTED.subarray(start, last + 1),
          totalBytes: FILE.length,
          range: { start, end: last },
        });
      }
    }
  });

  test('has no part behind its end', async () => {
    const { read, streams } = open({ bytes: FILE });
    expect(await read({ start: FILE.length, end: Infinity })).toBe(416);
    expect(streams[0]?.destroyed).toBe(true);
  });

  test('is whole where the service knows no parts', async () => {
    const { read } = open({ bytes: FILE, ranges: 'ignored' });
    const whole = await read({ start: 40, end: 60 });
    expect(whole).toMatchObject({ bytes: WANTED });
    expect(whole).not.toHaveProperty('range');
  });

  test('is asked for as it was wanted where no text can be, and for what else it is no PNG', async () => {
    const file = Buffer.concat([FILE, Buffer.alloc(2 * MiB)]);
    const { read, asked } = open({ bytes: file, pieceBytes: 65_536 });
    await read({ start: 0, end: 0 });
    await read({ start: MiB, end: Infinity });
    await read({ start: 40, end: 60 }, 'made_00001_.webp');
    expect(asked).toEqual([
      { start: 0, end: 0 },
      { start: MiB, end: Infinity },
      { start: 40, end: 60 },
    ]);
  });

  const long = textChunk('tEXt', 'other', 'x'.repeat(MiB));
  test.each([
    ['without a prompt', writePng([{ type: 'IHDR', data: Buffer.alloc(13) }])],
    ['that names no upload', fileWith('{"3": {"inputs": {"image": "lab%20up.png"}}}')],
    ['cut off in its prompt', FILE.subarray(0, FILE.indexOf('seed'))],
    ['with nothing in it', Buffer.alloc(0)],
    ['that is no picture', Buffer.from('not a picture, whatever its name says of it')],
    ['whose prompt comes late', fileWith(STORED, [long])],
  ])('stays as it is %s', async (_what, bytes) => {
    const { read, users } = open({ bytes, pieceBytes: 65_536 });
    const whole = await read();
    expect(typeof whole === 'object' && whole.bytes.equals(bytes)).toBe(true);
    expect(users).toEqual([]);
  });

  test('is not held back beyond what may be its prompt', async () => {
    const text = textChunk('tEXt', 'other', 'x'.repeat(4 * MiB));
    const { restoring, streams } = open({ bytes: fileWith(STORED, [text]), pieceBytes: 1000 });
    const answer = await restoring.content(CALLER, idOf('made.png'));
    if (!answer.ok || answer.value.kind !== 'bytes') throw new Error('no bytes');
    // The length of the chunk tells at once that the prompt is too far behind.
    const first = await new Promise<Buffer>((resolve) => {
      (answer.value as ContentBytes).stream.once('data', resolve);
    });
    expect(first.length).toBeLessThanOrEqual(1000);
    answer.value.stream.destroy();
    await expect.poll(() => streams[0]?.destroyed).toBe(true);
  });

  test('that breaks off breaks off for its reader', async () => {
    const { restoring, streams } = open({ bytes: FILE, pieceBytes: 50 });
    const answer = await restoring.content(CALLER, idOf('made.png'), { start: 20, end: 3000 });
    if (!answer.ok || answer.value.kind !== 'bytes') throw new Error('no bytes');
    streams[0]?.destroy(new Error('the connection is lost'));
    await expect(buffer(answer.value.stream)).rejects.toThrow('the connection is lost');
  });
});
