import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { open, readlink, readdir, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { uploadBody } from '../../../src/remote/files/multipart-body.ts';
import type { AssetUpload } from '../../../src/protocol/job-api.ts';
import { runFolder } from '../../support/graphs/v1-folders.ts';

const MB = 1024 * 1024;
const CHUNK = MB / 4;

let dir: string;
let server: Server;
let received: Buffer;
/** How long the server looks away after each piece. */
let pauseMs = 0;
let breaksOffAt = Infinity;

beforeAll(async () => {
  dir = await runFolder('body');
  server = createServer((incoming, response) => {
    void collect(incoming).then(
      () => response.end(),
      () => {},
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
});

async function collect(incoming: IncomingMessage): Promise<void> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of incoming) {
    pieces.push(piece as Buffer);
    bytes += (piece as Buffer).length;
    if (bytes > breaksOffAt) incoming.destroy();
    if (pauseMs > 0) await delay(pauseMs);
  }
  received = Buffer.concat(pieces);
}

async function fileOf(bytes: Buffer): Promise<AssetUpload> {
  const path = join(dir, 'file');
  await writeFile(path, bytes);
  return {
    file: { path, sizeBytes: bytes.length, hash: `blake3:${'0'.repeat(64)}` },
    contentType: 'application/octet-stream',
    filePath: 'a.bin',
  };
}

async function send(upload: AssetUpload): Promise<void> {
  const { headers, body } = uploadBody(upload, upload.file.hash);
  const { port } = server.address() as AddressInfo;
  const answer = await request(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers,
    body: body as never,
  });
  await answer.body.dump();
}

/** The content of the last part: the bytes between its headers and the final boundary. */
function fileIn(form: Buffer): Buffer {
  const start = form.indexOf('\r\n\r\n', form.indexOf('name="file"')) + 4;
  return form.subarray(start, form.lastIndexOf('\r\n--'));
}

async function openFiles(path: string): Promise<number> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return links.filter((link) => link === path).length;
}

describe('a file on its way', () => {
  test.each([
    ['nothing', 0],
    ['one byte', 1],
    ['a byte less than a chunk', CHUNK - 1],
    ['a chunk', CHUNK],
    ['a byte more than a chunk', CHUNK + 1],
    ['two chunks', 2 * CHUNK],
    ['many chunks and a bit', 37 * CHUNK + 12_345],
  ])('of %s arrives as it is', async (_what, length) => {
    const bytes = randomBytes(length);
    await send(await fileOf(bytes));
    expect(fileIn(received).equals(bytes)).toBe(true);
  });

  test('arrives as it is where the disk gives a little at a time', async () => {
    const handle = await open(dir);
    await handle.close();
    const handles = Object.getPrototypeOf(handle) as typeof handle;
    const { value: read } = Object.getOwnPropertyDescriptor(handles, 'read') as {
      value: (...args: unknown[]) => Promise<unknown>;
    };
    const spy = vi.spyOn(handles, 'read') as unknown as {
      mockImplementation(fake: (...args: never[]) => unknown): void;
    };
    spy.mockImplementation(function (this: unknown, buffer: Buffer, at: number, most: number) {
      return read.call(this, buffer, at, Math.min(most, 77_777));
    });
    const bytes = randomBytes(3 * MB + 5);
    await send(await fileOf(bytes)).finally(() => vi.restoreAllMocks());
    expect(fileIn(received).equals(bytes)).toBe(true);
  });

  test('is closed when the other side breaks off, and when it is not there to begin with', async () => {
    const upload = await fileOf(randomBytes(8 * MB));
    breaksOffAt = MB;
    await expect(send(upload).finally(() => (breaksOffAt = Infinity))).rejects.toThrow();
    await vi.waitFor(async () => expect(await openFiles(upload.file.path)).toBe(0));
    await rm(upload.file.path);
    await expect(send(upload)).rejects.toThrow('ENOENT');
  });
});
