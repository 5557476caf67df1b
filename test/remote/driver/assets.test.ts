import { writeFile } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { describe, expect, test } from 'vitest';
import type { AssetUpload } from '../../../src/protocol/job-api.ts';
import { type Hook, fault, output } from '../../support/upstreams/hostile-v2.ts';
import { spooled, value } from '../../support/app/jobs.ts';
import { CALLER, asked, openRemote } from './open.ts';

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

  test.each(['get', 'upload'] as const)(
    'a pause the account was told of, at a %s, is waited for',
    async (route) => {
      const { upstream, remote } = await openRemote({
        limits: { readBudgetMs: 50 },
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
});

describe('downloading', () => {
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
});
