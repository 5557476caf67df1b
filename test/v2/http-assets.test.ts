import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { refuse } from '../../src/protocol/job-api.ts';
import { ASSET, ASSET_ID, BYTES, type FakeJobs, HASH } from '../support/upstreams/fake-jobs.ts';
import { type TestV2App, createTestV2App } from '../support/app/v2-routes.ts';
import { type Part, multipart } from '../support/app/v1-routes.ts';

let app: TestV2App<FakeJobs>;
beforeEach(async () => void (app = await createTestV2App()));
afterEach(() => app.close());

function upload(...parts: Part[]) {
  return app.ask('/api/v2/assets', multipart(...parts));
}

function field(name: string, value: string): Part {
  return { name, value };
}

function errorOf(code: string) {
  return { error: { code, message: expect.any(String) as string, details: null } };
}

const FILE: Part = { name: 'file', filename: 'a.png', data: Buffer.from('picture') };
const FIELDS = [field('content_type', 'image/png'), field('file_path', 'input/a.png')];

describe('POST /assets', () => {
  test('answers 201 with the asset; the bytes arrive hashed', async () => {
    const answer = await upload(...FIELDS, FILE);
    expect([answer.status, answer.json()]).toEqual([
      201,
      { ...ASSET, url: app.url + ASSET.url, created_new: true },
    ]);
    expect(app.jobs.uploads).toMatchObject([
      {
        bytes: Buffer.from('picture'),
        contentType: 'image/png',
        filePath: 'input/a.png',
        file: { sizeBytes: 7, hash: expect.stringMatching(/^blake3:[0-9a-f]{64}$/) as string },
      },
    ]);
    expect(app.jobs.uploads[0]).not.toHaveProperty('tags');
  });

  test('answers 200 when the bytes were known', async () => {
    app.jobs.createdNew = false;
    expect((await upload(...FIELDS, FILE)).status).toBe(200);
  });

  test('takes its fields in any order, tags repeated', async () => {
    const more = [
      field('tags', 'a'),
      field('tags', 'b'),
      field('expires_in', '60'),
      field('expected_hash', HASH.replace('ab', 'AB')),
    ];
    expect((await upload(FILE, ...more, ...FIELDS)).status).toBe(201);
    expect(app.jobs.uploads).toMatchObject([
      { tags: ['a', 'b'], expiresInSeconds: 60, expectedHash: HASH },
    ]);
  });

  test.each([
    ['no file', [...FIELDS]],
    ['a file in another field', [...FIELDS, { ...FILE, name: 'image' }]],
    ['two files', [...FIELDS, FILE, FILE]],
    ['no content_type', [field('file_path', 'a.png'), FILE]],
    ['a line break', [field('content_type', 'a/b\r\nX: y'), field('file_path', 'a.png'), FILE]],
    ['no file_path', [field('content_type', 'image/png'), FILE]],
    ['an expires_in that is no number', [...FIELDS, field('expires_in', 'soon'), FILE]],
  ])('refuses %s with 422 and keeps nothing', async (_what, parts) => {
    const answer = await upload(...parts);
    expect([answer.status, answer.json()]).toEqual([422, errorOf('invalid_request')]);
    expect([app.jobs.uploads, await app.spooled()]).toEqual([[], []]);
  });

  test('answers 409 to an expected_hash that no bytes have, and keeps nothing', async () => {
    const answer = await upload(...FIELDS, field('expected_hash', 'sha256:00'), FILE);
    expect([answer.status, answer.json()]).toEqual([409, errorOf('hash_mismatch')]);
    expect([app.jobs.uploads, await app.spooled()]).toEqual([[], []]);
  });

  test('refuses a body that is no form with 422', async () => {
    const answer = await app.ask('/api/v2/assets', { method: 'POST', body: '{}' });
    expect([answer.status, answer.json()]).toEqual([422, errorOf('invalid_request')]);
  });
});

describe('assets by hash', () => {
  const fromHash = (body: unknown) =>
    app.ask('/api/v2/assets/from-hash', { method: 'POST', body: JSON.stringify(body) });

  test('POST from-hash mints a record and answers 201', async () => {
    app.jobs.createdNew = false;
    const answer = await fromHash({ hash: HASH, file_path: 'b.png', tags: ['t'], expires_in: 60 });
    expect([answer.status, answer.json()]).toEqual([
      201,
      { ...ASSET, url: app.url + ASSET.url, created_new: false },
    ]);
    expect(app.jobs.fromHash).toEqual([
      { hash: HASH, filePath: 'b.png', tags: ['t'], expiresInSeconds: 60 },
    ]);
  });

  test('POST from-hash needs the hash only', async () => {
    await fromHash({ hash: HASH, file_path: null });
    expect(app.jobs.fromHash).toEqual([{ hash: HASH }]);
  });

  test.each([
    {},
    { hash: 'x' },
    { hash: HASH, tags: 'a' },
    { hash: HASH, expires_in: '60' },
    { hash: HASH, file_path: 1 },
  ])('POST from-hash answers 404 to %j: the contract has no other refusal', async (body) => {
    const answer = await fromHash(body);
    expect([answer.status, answer.json()]).toEqual([404, errorOf('blob_not_found')]);
    expect(app.jobs.fromHash).toEqual([]);
  });

  test.each(['', '[]'])('POST from-hash answers 404 to the body %j', async (body) => {
    const answer = await app.ask('/api/v2/assets/from-hash', { method: 'POST', body });
    expect([answer.status, answer.json()]).toEqual([404, errorOf('blob_not_found')]);
  });

  test('POST from-hash answers 404 where its path or lifetime is refused', async () => {
    app.jobs.answers.assetFromHash = refuse(422, 'invalid_request', 'no');
    expect((await fromHash({ hash: HASH })).status).toBe(404);
    app.jobs.answers.assetFromHash = refuse(422, 'idempotency_key_reuse', 'no');
    expect((await fromHash({ hash: HASH })).status).toBe(422);
  });

  test.each([
    [HASH, 200],
    [HASH.replace(':', '%3A'), 200],
    [`blake3:${'cd'.repeat(32)}`, 404],
    ['nonsense', 404],
  ])('HEAD by-hash/%s answers %i and nothing else', async (hash, status) => {
    const answer = await app.ask(`/api/v2/assets/by-hash/${hash}`, { method: 'HEAD' });
    expect([answer.status, answer.body.length, answer.headers['content-type']]).toEqual([
      status,
      0,
      undefined,
    ]);
  });
});

describe('one asset', () => {
  test('GET answers 200', async () => {
    const answer = await app.ask(`/api/v2/assets/${ASSET_ID}`);
    expect([answer.status, answer.json()]).toEqual([200, { ...ASSET, url: app.url + ASSET.url }]);
  });

  test('DELETE answers 204, or 409 while it is in use', async () => {
    expect((await app.ask(`/api/v2/assets/${ASSET_ID}`, { method: 'DELETE' })).status).toBe(204);
    app.jobs.answers.deleteAsset = refuse(409, 'asset_in_use', 'no');
    const answer = await app.ask(`/api/v2/assets/${ASSET_ID}`, { method: 'DELETE' });
    expect([answer.status, answer.json()]).toEqual([409, errorOf('asset_in_use')]);
  });
});

describe('GET content', () => {
  const content = (headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    app.ask(`/api/v2/assets/${ASSET_ID}/content`, { headers, method });

  test('answers 200 with everything, its type, and the hash as ETag', async () => {
    const answer = await content();
    expect([answer.status, answer.body.toString()]).toEqual([200, BYTES.toString()]);
    expect(answer.headers).toMatchObject({
      'content-type': 'image/png',
      'content-length': '10',
      'accept-ranges': 'bytes',
      etag: `"${HASH}"`,
    });
  });

  test('cannot be used to run a page as ours', async () => {
    expect((await content()).headers).toMatchObject({
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
  });

  test.each([
    ['bytes=0-3', '0123', 'bytes 0-3/10'],
    ['bytes=4-', '456789', 'bytes 4-9/10'],
    ['bytes=-3', '789', 'bytes 7-9/10'],
  ])('answers 206 to %s', async (range, body, contentRange) => {
    const answer = await content({ Range: range });
    expect([answer.status, answer.body.toString(), answer.headers['content-range']]).toEqual([
      206,
      body,
      contentRange,
    ]);
    expect(answer.headers['content-length']).toBe(String(body.length));
  });

  test.each(['bytes=10-', 'bytes=-0'])('answers 416 to %s', async (range) => {
    const answer = await content({ Range: range });
    expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */10']);
    expect(answer.json()).toMatchObject({ error: { code: 'range_not_satisfiable' } });
  });

  test.each(['bytes=0-1,3-4', 'bytes=x-y', `bytes=${'0-0,'.repeat(2000)}1-1`])(
    'answers with everything to the range "%.20s"',
    async (range) => {
      const answer = await content({ Range: range });
      expect([answer.status, answer.body.toString()]).toEqual([200, BYTES.toString()]);
    },
  );

  test('answers with everything when the copy the range is for is another one', async () => {
    expect((await content({ Range: 'bytes=0-1', 'If-Range': '"other"' })).status).toBe(200);
    expect((await content({ Range: 'bytes=0-1', 'If-Range': `"${HASH}"` })).status).toBe(206);
  });

  // `fetch` sends the second with every condition.
  test.each([{}, { 'Cache-Control': 'no-cache' }])(
    'answers 304 to who has it (%j)',
    async (more) => {
      const answer = await content({ 'If-None-Match': `"x", "${HASH}"`, ...more });
      expect([answer.status, answer.body.length, answer.headers.etag]).toEqual([
        304,
        0,
        `"${HASH}"`,
      ]);
      expect((await content({ 'If-None-Match': '"x"' })).status).toBe(200);
    },
  );

  test('HEAD tells size and type', async () => {
    const answer = await content({}, 'HEAD');
    expect([answer.status, answer.body.length, answer.headers['content-length']]).toEqual([
      200,
      0,
      '10',
    ]);
  });

  test('sends the caller to where the bytes are', async () => {
    app.jobs.contentAnswer = { kind: 'redirect', location: 'https://store.example/x?sig=1' };
    const answer = await content();
    expect([answer.status, answer.headers.location]).toEqual([
      302,
      'https://store.example/x?sig=1',
    ]);
  });

  test('leaves no file open, whatever was asked', async () => {
    const asked: Readonly<Record<string, string>>[] = [
      {},
      { Range: 'bytes=0-1' },
      { Range: 'bytes=99-' },
      { 'If-None-Match': `"${HASH}"` },
    ];
    for (const headers of asked) await content(headers);
    await content({}, 'HEAD');
    await expect.poll(() => app.jobs.openStreams.size).toBe(0);
  });

  test('cuts the answer off when the bytes end in an error', async () => {
    const stream = new Readable({ read() {} });
    app.jobs.contentAnswer = { kind: 'bytes', stream, contentType: 'a/b', totalBytes: 10 };
    const answer = content();
    stream.push('01234');
    await expect.poll(() => app.jobs.ranges.length).toBe(1);
    stream.destroy(new Error('disk'));
    await expect(answer).rejects.toThrow();
  });
});
