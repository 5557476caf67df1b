import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type Server, createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { FileStream } from '../../../src/upstreams/assets/file-stream.ts';

const MB = 1024 * 1024;

let dir: string;
let server: Server;
let serve: () => FileStream;
const allocated = vi.spyOn(Buffer, 'allocUnsafeSlow');

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'holdover-stream-'));
  server = createServer((_request, response) => {
    const stream = serve();
    stream.reuseBuffersFor(response);
    pipeline(stream, response, () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await rm(dir, { recursive: true, force: true });
});

async function fileOf(bytes: Buffer): Promise<FileHandle> {
  const path = join(dir, 'file');
  await writeFile(path, bytes);
  return open(path);
}

async function answer(): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const [response] = (await once(get({ port, host: '127.0.0.1' }), 'response')) as [
    IncomingMessage,
  ];
  return response;
}

/** Each chunk is copied when it is received. */
async function received(response: AsyncIterable<Buffer>, pauseMs = 0): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const chunk of response) {
    copies.push(Buffer.from(chunk));
    if (pauseMs > 0 && copies.length % 20 === 0) await delay(pauseMs);
  }
  return Buffer.concat(copies);
}

describe('a file that is sent to a response', () => {
  test.each([
    ['nothing', 0],
    ['one byte', 1],
    ['a byte less than a buffer', MB - 1],
    ['a buffer', MB],
    ['a byte more than a buffer', MB + 1],
    ['many buffers and a bit', 21 * MB + 12_345],
  ])('of %s arrives as it is, fast or slowly', async (_what, length) => {
    const bytes = randomBytes(length);
    for (const pauseMs of [0, 2]) {
      const handle = await fileOf(bytes);
      serve = () => new FileStream(handle, { start: 0, end: length - 1 });
      expect((await received(await answer(), pauseMs)).equals(bytes)).toBe(true);
    }
  });

  test('needs few buffers, however large it is', async () => {
    const length = 40 * MB;
    const handle = await fileOf(randomBytes(length));
    serve = () => new FileStream(handle, { start: 0, end: length - 1 });
    allocated.mockClear();
    await received(await answer());
    const large = allocated.mock.calls.filter(([size]) => size === MB);
    expect(large.length).toBeLessThanOrEqual(4);
  });

  test('arrives as it is where the disk gives a little at a time', async () => {
    const bytes = randomBytes(2 * MB);
    const handle = await fileOf(bytes);
    const read = handle.read.bind(handle) as (...args: unknown[]) => Promise<unknown>;
    let reads = 0;
    handle.read = ((buffer: Buffer, at: number, most: number, position: number) =>
      read(buffer, at, Math.min(most, (reads++ % 3) * 9_999 + 7), position)) as never;
    serve = () => new FileStream(handle, { start: 0, end: bytes.length - 1 });
    expect((await received(await answer())).equals(bytes)).toBe(true);
  });

  test('is closed when the other side breaks off', async () => {
    const handle = await fileOf(randomBytes(30 * MB));
    serve = () => new FileStream(handle, { start: 0, end: 30 * MB - 1 });
    const response = await answer();
    await once(response, 'data');
    response.destroy();
    await vi.waitFor(() => expect(handle.fd).toBe(-1));
  });
});

test('a reader that keeps the chunks gets a buffer for each', async () => {
  const bytes = randomBytes(5 * MB);
  const stream = new FileStream(await fileOf(bytes), { start: 3, end: 4 * MB });
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  expect(Buffer.concat(chunks).equals(bytes.subarray(3, 4 * MB + 1))).toBe(true);
});

test('a disk that fails is the error of the stream', async () => {
  const handle = await fileOf(randomBytes(9));
  handle.read = (async () => {
    throw new Error('EIO');
  }) as never;
  const stream = new FileStream(handle, { start: 0, end: 8 });
  await expect(received(stream)).rejects.toThrow('EIO');
});
