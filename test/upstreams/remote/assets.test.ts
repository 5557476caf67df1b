import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { AssetUpload } from '../../../src/protocol/job-api.ts';
import { type Hook, error, fault, output } from '../../support/upstreams/hostile-v2.ts';
import { contentText, spooled, value } from '../../support/app/jobs.ts';
import { CALLER, asked, openRemote, tempDir } from './open.ts';

async function upload(content: string, more: Partial<AssetUpload> = {}): Promise<AssetUpload> {
  const file = await spooled(content);
  return { file, contentType: 'image/png', filePath: 'input/a.png', ...more };
}

describe('uploading', () => {
  test('what describes the file comes first, the file last, with its length', async () => {
    const { upstream, remote } = await openRemote();
    const more = { tags: ['a', 'b'], expiresInSeconds: 60, filePath: 'input/"ü".png' };
    const given = await upload('BYTES', more);
    value(await remote.createAsset(CALLER, given));
    const [request] = upstream.requests('upload');
    const text = request!.body.toString();
    const names = [...text.matchAll(/; name="([^"]+)"/g)].map(([, name]) => name);
    expect(names).toEqual([
      'content_type',
      'file_path',
      'expected_hash',
      'tags',
      'tags',
      'expires_in',
      'file',
    ]);
    expect(text).toContain(
      'filename="input/%22ü%22.png"\r\nContent-Type: image/png\r\n\r\nBYTES\r\n--',
    );
    expect(text).toContain(`\r\n\r\n${given.file.hash}\r\n`);
    expect(request?.headers['content-length']).toBe(String(request?.body.length));
    expect(request?.headers['transfer-encoding']).toBeUndefined();
    expect(request?.headers['idempotency-key']).toMatch(/.{36}/);
  });

  test('known bytes do not travel', async () => {
    const { upstream, remote } = await openRemote();
    value(await remote.createAsset(CALLER, await upload('same')));
    const again = value(await remote.createAsset(CALLER, await upload('same')));
    expect(again.created_new).toBe(false);
    expect(upstream.requests('upload')).toHaveLength(1);
    expect(upstream.requests('byHash')[0]?.path).toContain('blake3%3A');
  });

  test.each([
    ['known, then gone', [fault.refuse(404, 'blob_not_found')]],
    ['known, then a failure', [fault.refuse(500, 'upstream_error')]],
  ])('%s: the bytes are sent', async (_, hooks) => {
    const { upstream, remote } = await openRemote();
    upstream.always('byHash', ({ res }) => void res.writeHead(200).end());
    upstream.once('fromHash', ...hooks);
    value(await remote.createAsset(CALLER, await upload('x')));
    expect(upstream.requests('upload')).toHaveLength(1);
  });

  test('a server without lookups by hash is not asked again', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('byHash', ({ res }) => void res.writeHead(405).end());
    value(await remote.createAsset(CALLER, await upload('x')));
    value(await remote.createAsset(CALLER, await upload('y')));
    expect(upstream.requests('byHash')).toHaveLength(1);
  });

  test('bytes damaged on the way are sent once more', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once('upload', fault.refuse(409, 'hash_mismatch'));
    value(await remote.createAsset(CALLER, await upload('x')));
    expect(upstream.requests('upload')).toHaveLength(2);
  });

  test('bytes damaged on our disk are hashed again, never sent without a hash', async () => {
    const { upstream, remote } = await openRemote();
    const given = await upload('right');
    await writeFile(given.file.path, 'wrong');
    upstream.once('upload', fault.refuse(409, 'hash_mismatch'));
    const asset = value(await remote.createAsset(CALLER, given));
    expect(asset.hash).toMatch(/^blake3:[0-9a-f]{64}$/);
    expect(asset.hash).not.toBe(given.file.hash);
  });

  test('bytes that are not what was promised are refused without asking', async () => {
    const { upstream, remote } = await openRemote();
    const expectedHash = `blake3:${'0'.repeat(64)}`;
    expect(await remote.createAsset(CALLER, await upload('x', { expectedHash }))).toMatchObject({
      error: { status: 409, code: 'hash_mismatch' },
    });
    expect(upstream.journal).toEqual([]);
  });

  test('a second mismatch is the end', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('upload', fault.refuse(409, 'hash_mismatch'));
    expect(await remote.createAsset(CALLER, await upload('x'))).toMatchObject({
      error: { code: 'hash_mismatch' },
    });
    expect(upstream.requests('upload')).toHaveLength(2);
  });

  test('a lost upload is tried again, by its hash first', async () => {
    const { upstream, remote } = await openRemote();
    const given = await upload('landed');
    upstream.once('upload', ({ req, body, server }) => {
      server.blobs.set(given.file.hash, body);
      req.socket.resetAndDestroy();
    });
    value(await remote.createAsset(CALLER, given));
    expect(upstream.requests('upload')).toHaveLength(1);
    expect(upstream.requests('fromHash')).toHaveLength(1);
  });

  test.each(['get', 'upload'] as const)(
    'a pause the account was told of, at a %s, is waited for',
    async (route) => {
      const { upstream, remote } = await openRemote({
        limits: { readBudgetMs: 50, submitBudgetMs: 0 },
      });
      const { id } = upstream.addJob();
      const refuse = fault.refuse(429, 'rate_limited', { 'Retry-After': '1' });
      upstream.once(route, refuse);
      const reading = route === 'get' ? remote.get(CALLER, id) : undefined;
      await asked(upstream, 'get', reading ? 1 : 0);
      await new Promise((resolve) => setTimeout(resolve, 30));
      value(await remote.createAsset(CALLER, await upload('patient')));
      await reading;
      const [refused] = upstream.requests(route);
      const waited = (upstream.requests('upload').at(-1)?.atMs ?? 0) - (refused?.atMs ?? 0);
      expect(waited).toBeGreaterThanOrEqual(290);
    },
  );

  test('a pause that is too long is reported with its Retry-After', async () => {
    const { upstream, remote } = await openRemote({ limits: { uploadBudgetMs: 50 } });
    upstream.always('upload', fault.refuse(429, 'rate_limited', { 'Retry-After': '9' }));
    expect(await remote.createAsset(CALLER, await upload('hasty'))).toMatchObject({
      error: { status: 429, code: 'rate_limited', retryAfterSeconds: 9 },
    });
    expect(upstream.requests('upload')).toHaveLength(1);
  });

  test('413 while the file is still being sent stops the sending', async () => {
    const { upstream, remote } = await openRemote();
    upstream.hasty.add('upload');
    upstream.always('upload', ({ json }) =>
      json(413, error('payload_too_large'), { Connection: 'close' }),
    );
    const answer = await remote.createAsset(CALLER, await upload('x'.repeat(32 * 1024 * 1024)));
    expect(answer).toMatchObject({ ok: false });
    expect(['payload_too_large', 'upstream_unreachable']).toContain(
      !answer.ok && answer.error.code,
    );
  });

  test.each([
    ['taken', []],
    ['refused', [fault.refuse(422, 'invalid_request')]],
    ['lost', [fault.reset(), fault.reset()]],
  ])('the spooled file is gone afterwards: %s', async (_, hooks) => {
    const { upstream, remote } = await openRemote();
    upstream.once('upload', ...hooks);
    const given = await upload('x');
    await remote.createAsset(CALLER, given);
    expect(existsSync(given.file.path)).toBe(false);
  });

  test('a large upload keeps memory flat', async () => {
    const { upstream, remote } = await openRemote({ limits: { readTimeoutMs: 10_000 } });
    upstream.hasty.add('upload');
    let received = 0;
    const held: number[] = [];
    upstream.once('upload', async ({ req, json }) => {
      for await (const chunk of req) {
        received += (chunk as Buffer).length;
        if (received > (held.length + 1) * LOOK_BYTES) held.push(bytesHeld());
      }
      json(201, { id: 'big', size_bytes: received, hash: null });
    });
    const sizeBytes = 128 * 1024 * 1024;
    const path = join(await tempDir(), 'big');
    await writeFile(path, '');
    const { truncate } = await import('node:fs/promises');
    await truncate(path, sizeBytes);
    const before = bytesHeld();
    const file = { path, sizeBytes, hash: `blake3:${'1'.repeat(64)}` };
    value(await remote.createAsset(CALLER, { ...(await upload('')), file }));
    expect(received).toBeGreaterThan(sizeBytes);
    expect(held).toHaveLength(8);
    expect(Math.max(...held) - before).toBeLessThan(sizeBytes / 4);
  });
});

describe('downloading', () => {
  test('a range is passed on and comes back as one', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', ({ req, res }) => {
      expect(req.headers.range).toBe('bytes=2-4');
      res.writeHead(206, { 'Content-Range': 'bytes 2-4/10', 'Content-Length': '3', ETag: '"e"' });
      res.end('234');
    });
    const content = value(await remote.content(CALLER, 'a', { start: 2, end: 4 }));
    expect(content).toMatchObject({ totalBytes: 10, range: { start: 2, end: 4 }, etag: '"e"' });
  });

  test.each([
    ['https://signed.example/x?sig=1', 'https://signed.example/x?sig=1'],
    ['/elsewhere?x=1', 'ORIGIN/elsewhere?x=1'],
  ])('a redirect to %s is told, not followed', async (location, expected) => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', ({ res }) => void res.writeHead(302, { Location: location }).end());
    expect(value(await remote.content(CALLER, 'a'))).toMatchObject({
      kind: 'redirect',
      location: expected.replace('ORIGIN', upstream.origin),
    });
    expect(upstream.journal).toHaveLength(1);
  });

  test.each(['file:///etc/passwd', 'javascript:alert(1)', 'https://u:p@h.example/'])(
    'a redirect to %s is no answer',
    async (location) => {
      const { upstream, remote } = await openRemote();
      upstream.always(
        'content',
        ({ res }) => void res.writeHead(302, { Location: location }).end(),
      );
      expect(await remote.content(CALLER, 'a')).toMatchObject({
        error: { status: 502, code: 'bad_upstream_response' },
      });
    },
  );

  test.each([
    [404, 'output_unavailable'],
    [416, 'range_not_satisfiable'],
    [502, 'upstream_error'],
  ])('%i %s is a value', async (status, code) => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', fault.refuse(status, code));
    expect(await remote.content(CALLER, 'a')).toMatchObject({ error: { status, code } });
  });

  test('a file that is gone under every id that its job states is gone', async () => {
    const { upstream, remote } = await openRemote();
    const job = upstream.addJob({ status: 'succeeded' });
    const file = Buffer.from(JSON.stringify({ f: 'a.png', s: '', t: 'output', j: job.id }));
    let signature = 0;
    const nextId = () => `${file.toString('base64url')}.${++signature}`;
    upstream.always('get', ({ json }) =>
      json(200, { ...job, outputs: [output({ id: nextId() })] }),
    );
    upstream.always('content', fault.refuse(404, 'output_unavailable'));
    expect(await remote.content(CALLER, nextId())).toMatchObject({ error: { status: 404 } });
    expect(upstream.requests('content')).toHaveLength(2);
  });

  test("a proxy's page is not the service's word that a file is gone", async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', fault.html(404));
    expect(await remote.content(CALLER, 'a')).toMatchObject({
      error: { status: 502, code: 'bad_upstream_response' },
    });
  });

  test('a part with more bytes than its range is no answer', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', ({ res }) => {
      res.writeHead(206, { 'Content-Range': 'bytes 0-4/10', 'Content-Length': '10' });
      res.end('0123456789');
    });
    expect(await remote.content(CALLER, 'a', { start: 0, end: 4 })).toMatchObject({
      error: { status: 502 },
    });
  });

  test.each<[string, Hook]>([
    [
      'of unknown length',
      ({ res }) => {
        res.writeHead(206, { 'Content-Range': 'bytes 0-4/10' });
        res.end('0123456789');
      },
    ],
    [
      'that is resumed',
      ({ req, res }) => {
        const isFirst = req.headers.range === 'bytes=0-4';
        const [range, length] = isFirst ? ['0-4', '5'] : ['2-9', '8'];
        res.writeHead(206, {
          'Content-Range': `bytes ${range}/10`,
          'Content-Length': length,
          ETag: '"e"',
        });
        res.write(isFirst ? '01' : '23456789');
        setTimeout(() => (isFirst ? res.destroy() : res.end()), 10);
      },
    ],
  ])('a part %s has no more bytes than its range', async (_, hook) => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', hook);
    const content = value(await remote.content(CALLER, 'a', { start: 0, end: 4 }));
    if (content.kind !== 'bytes') throw new Error('no bytes');
    let received = 0;
    content.stream.on('data', (chunk: Buffer) => (received += chunk.length));
    await expect(finished(content.stream)).rejects.toThrow('too many bytes');
    expect(received).toBeLessThanOrEqual(5);
  });

  test('bytes that break off are an error, never a short file', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', ({ res }) => {
      res.writeHead(200, { 'Content-Length': '10' });
      res.write('01234');
      setTimeout(() => res.destroy(), 10);
    });
    await expect(contentText(remote, 'a', CALLER)).rejects.toThrow();
  });

  test('bytes that come slowly but come are waited for', async () => {
    const { upstream, remote } = await openRemote({ limits: { bodyIdleTimeoutMs: 300 } });
    upstream.always('content', async ({ res }) => {
      res.writeHead(200, { 'Content-Length': '10' });
      for (const digit of '0123456789') {
        res.write(digit);
        await new Promise((resolve) => setTimeout(resolve, 60));
      }
      res.end();
    });
    expect(await contentText(remote, 'a', CALLER)).toBe('0123456789');
  });

  test('bytes of unknown length come as they are', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('content', ({ res }) => {
      res.write('01234');
      res.end('56789');
    });
    const content = value(await remote.content(CALLER, 'a'));
    expect(content).toMatchObject({ kind: 'bytes', totalBytes: Infinity });
    expect(await contentText(remote, 'a', CALLER)).toBe('0123456789');
  });

  test('a listener who leaves takes the download along', async () => {
    const { upstream, remote } = await openRemote();
    let sent = 0;
    upstream.always('content', ({ res }) => {
      res.writeHead(200, { 'Content-Length': String(1024 ** 3) });
      const more = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(64 * 1024))) sent += 64 * 1024;
      };
      res.on('drain', more);
      more();
    });
    const content = value(await remote.content(CALLER, 'a'));
    if (content.kind === 'bytes') content.stream.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = sent;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(sent).toBe(before);
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });
});

const LOOK_BYTES = 16 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** In buffers that are still referenced; when the others go is up to the collector. */
function bytesHeld(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}
