import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { type IncomingMessage, type ServerResponse, get, request } from 'node:http';
import { join } from 'node:path';
import { createHash } from 'blake3';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type HostileV2, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import type { Holdover } from '../support/processes/holdover.ts';
import { startInFront } from '../support/processes/holdover-before-hostile.ts';
import { type StorageHost, openStorageHost } from '../support/upstreams/storage-host.ts';

// Memory does not grow with the size of files. HOLDOVER_TEST_LARGE_MB=1024 tries a whole gigabyte.

const MEBIBYTE = 1024 * 1024;
const LARGE_MB = Number(process.env['HOLDOVER_TEST_LARGE_MB'] ?? 100);
const SMALL_MB = 20;
const ALLOWED_MB = 64;
vi.setConfig({ testTimeout: 120_000, hookTimeout: 30_000 });

let upstream: HostileV2;
let holdover: Holdover;
let storage: StorageHost;
let received = { bytes: 0, hash: '' };

beforeAll(async () => {
  upstream = await openHostileV2();
  storage = await openStorageHost();
  holdover = await startInFront(upstream, {
    args: ['--max-upload-size', String(LARGE_MB + 1)],
    env: { HOLDOVER_LOG_LEVEL: 'warn' },
    limits: { submitTimeoutMs: 60_000, readTimeoutMs: 30_000 },
  });
  upstream.hasty.add('upload');
  upstream.always('byHash', ({ res }) => void res.writeHead(404).end());
  upstream.always('upload', async ({ req, json }) => {
    let bytes = 0;
    let [head, last] = ['', ''];
    for await (const chunk of req as AsyncIterable<Buffer>) {
      if (bytes === 0) head = chunk.toString('latin1', 0, 2048);
      last = (last + chunk.toString('latin1', Math.max(0, chunk.length - 2048))).slice(-2048);
      bytes += chunk.length;
    }
    received = { bytes, hash: /blake3:[0-9a-f]{64}/.exec(head + last)?.[0] ?? '' };
    json(201, { ...ASSET, id: `large-${bytes}`, size_bytes: bytes, hash: received.hash });
  });
});
afterAll(async () => {
  await holdover?.dispose();
  await upstream?.close();
  await storage?.close();
});

const ASSET = {
  content_type: 'application/octet-stream',
  created_at: '2026-01-01T00:00:00Z',
  url: '/x',
  url_expires_at: '2026-01-02T00:00:00Z',
};

function residentMb(): number {
  const status = readFileSync(`/proc/${holdover.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** The most memory held while something happens, above what was held before. */
async function growthMb(act: () => Promise<void>): Promise<number> {
  const before = residentMb();
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, residentMb())), 20);
  await act().finally(() => clearInterval(watch));
  const grown = Math.max(most, residentMb()) - before;
  if (process.env['HOLDOVER_TEST_LARGE_MB']) console.log({ before, most, grown });
  return grown;
}

/** Writes blocks as fast as they are taken. */
async function writeBlocks(
  to: { write(chunk: Buffer): boolean; once(event: 'drain', go: () => void): unknown },
  megabytes: number,
  seen: (block: Buffer) => void = () => {},
): Promise<void> {
  const block = Buffer.alloc(MEBIBYTE);
  for (let i = 0; i < megabytes; i++) {
    block.writeUInt32LE(i + megabytes * 4096);
    seen(block);
    // The block is used again: what is written must not change before it is sent.
    if (!to.write(Buffer.from(block))) await new Promise<void>((go) => to.once('drain', go));
  }
}

async function upload(megabytes: number): Promise<{ status: number; hash: string }> {
  const open = '--b\r\nContent-Disposition: form-data; name="image"; filename="big.bin"\r\n\r\n';
  const close = '\r\n--b--\r\n';
  const outgoing = request(`${holdover.url}/upload/image`, {
    method: 'POST',
    headers: {
      'Content-Type': 'multipart/form-data; boundary=b',
      'Content-Length': open.length + megabytes * MEBIBYTE + close.length,
    },
  });
  const answered = new Promise<number>((resolve, reject) => {
    outgoing.once('error', reject);
    outgoing.once('response', (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
    });
  });
  const hasher = createHash();
  outgoing.write(open);
  await writeBlocks(outgoing, megabytes, (block) => void hasher.update(block));
  outgoing.end(close);
  return { status: await answered, hash: `blake3:${hasher.digest('hex')}` };
}

async function download(megabytes: number): Promise<void> {
  const [answer] = (await once(
    get(`${holdover.url}/view?type=input&filename=big.bin`),
    'response',
  )) as [IncomingMessage];
  let size = 0;
  for await (const chunk of answer) size += (chunk as Buffer).length;
  expect(size).toBe(megabytes * MEBIBYTE);
}

async function serve(res: ServerResponse, megabytes: number): Promise<void> {
  const headers = { 'Content-Length': megabytes * MEBIBYTE, ETag: '"large"' };
  res.writeHead(200, headers);
  await writeBlocks(res, megabytes);
  res.end();
}

test(`an upload of ${LARGE_MB} MB reaches the upstream whole, and is not held in memory`, async () => {
  await upload(SMALL_MB);
  const grown = await growthMb(async () => {
    const sent = await upload(LARGE_MB);
    expect(sent.status).toBe(200);
    expect(received.bytes).toBeGreaterThan(LARGE_MB * MEBIBYTE);
    expect(received.hash).toBe(sent.hash);
  });
  // A copy of it is stored after the answer.
  await expect.poll(() => readdir(join(holdover.dataDir, 'spool'))).toEqual([]);
  expect(grown).toBeLessThan(ALLOWED_MB);
});

test.each(['bytes', 'a link'])(
  `a download of ${LARGE_MB} MB is not held in memory: the upstream answers with %s`,
  async (how) => {
    let megabytes = SMALL_MB;
    storage.always(({ res }) => void serve(res, megabytes));
    upstream.always('content', ({ res }) =>
      how === 'bytes'
        ? serve(res, megabytes)
        : res.writeHead(302, { Location: `${storage.url}/large` }).end(),
    );
    await download(megabytes);
    megabytes = LARGE_MB;
    const grown = await growthMb(() => download(megabytes));
    expect(grown).toBeLessThan(ALLOWED_MB);
  },
);
