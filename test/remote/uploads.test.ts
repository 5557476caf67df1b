import { readdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { hash } from 'blake3';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { type HostileV2, error, fault, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import type { Holdover } from '../support/processes/holdover.ts';
import { madeOutputs, startInFront } from '../support/processes/holdover-before-hostile.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { loading } from '../support/graphs/workflows.ts';

// A real server in front of an upstream that keeps what it is sent, account by account.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const anna = { 'X-API-Key': 'key-of-anna' };
const ben = { 'X-API-Key': 'key-of-ben' };

let upstream: HostileV2;
/** Tells nothing but the content. */
const CONTENT_PATH = /^input\/holdover-[0-9a-f]{16}\/[0-9a-f]{64}\.png$/;

let holdover: Holdover;
let fixed: Holdover;
/** The bytes of each record, by its id. */
const records = new Map<string, Buffer>();

beforeAll(async () => {
  upstream = await openHostileV2();
  holdover = await startInFront(upstream);
  fixed = await startInFront(upstream, { env: { HOLDOVER_UPSTREAM_KEY: 'key-of-the-server' } });
});
afterAll(async () => {
  await Promise.all([holdover?.dispose(), fixed?.dispose()]);
  await upstream?.close();
});
beforeEach(() => {
  upstream.journal.length = 0;
  upstream.blobs.clear();
  upstream.always('upload', keep);
  upstream.always('fromHash', createFromHash);
  upstream.always('content', ({ id, res }) => {
    const bytes = records.get(id);
    if (!bytes) return void res.writeHead(404).end();
    res.writeHead(200, { 'Content-Length': bytes.length }).end(bytes);
  });
});

function record(bytes: Buffer, hashText: string): object {
  const id = `record-${records.size + 1}`;
  records.set(id, bytes);
  return { id, hash: hashText, size_bytes: bytes.length, ...TIMES };
}
const TIMES = {
  content_type: 'image/png',
  created_at: '2026-01-01T00:00:00Z',
  url: '/x',
  url_expires_at: '2026-01-02T00:00:00Z',
};

const keep: Parameters<HostileV2['always']>[1] = ({ body, json }) => {
  const { fields, file } = formOf(body);
  const hashText = `blake3:${hash(file).toString('hex')}`;
  if (fields.get('expected_hash') !== hashText) return json(409, error('hash_mismatch'));
  upstream.blobs.set(hashText, file);
  json(201, record(file, hashText));
};

const createFromHash: Parameters<HostileV2['always']>[1] = ({ body, json }) => {
  const asked = JSON.parse(body.toString()) as { hash: string };
  const bytes = upstream.blobs.get(asked.hash);
  if (!bytes) return json(404, error('blob_not_found'));
  json(201, record(bytes, asked.hash));
};

/** The form as a streaming server reads it: what comes before the file, and the file. */
function formOf(body: Buffer): { fields: Map<string, string>; file: Buffer } {
  const boundary = body.subarray(0, body.indexOf('\r\n'));
  const start = body.indexOf('name="file"');
  const fileStart = body.indexOf('\r\n\r\n', start) + 4;
  const fileEnd = body.indexOf(Buffer.concat([Buffer.from('\r\n'), boundary]), fileStart);
  const before = body.subarray(0, start).toString();
  const fields = [...before.matchAll(/name="([^"]+)"\r\n\r\n([^\r]*)\r\n/g)];
  return {
    fields: new Map(fields.map(([, name = '', value = '']) => [name, value])),
    file: body.subarray(fileStart, fileEnd),
  };
}

/** The requests about files; a key is checked with a request about jobs. */
const asked = () => upstream.journal.filter(({ path }) => path.includes('/assets'));
const routes = (): string[] => asked().map(({ route }) => route);

type File = {
  readonly name: string;
  readonly bytes: Buffer;
  readonly fields?: Record<string, string>;
};

async function upload(file: File, headers: Record<string, string> = anna, to = holdover) {
  return uploadInput(to.url, file, headers);
}

async function viewed(name: string, headers: Record<string, string> = anna, from = holdover) {
  const query = new URLSearchParams({ filename: name, type: 'input' }).toString();
  const answer = await fetch(`${from.url}/view?${query}`, { headers });
  return [answer.status, await answer.text()];
}

/** The answer whatever its status. */
async function tryUpload({ name, bytes, fields = {} }: File, to = holdover): Promise<Response> {
  const form = new FormData();
  for (const [key, value] of Object.entries(fields)) form.append(key, value);
  form.append('image', new Blob([new Uint8Array(bytes)]), name);
  return fetch(`${to.url}/upload/image`, { method: 'POST', body: form, headers: anna });
}

let count = 0;
const fresh = (): Buffer => Buffer.from(`bytes ${process.pid} ${(count += 1)}`);

describe('an upload', () => {
  test('of new bytes: are they known, then the form, its file last', async () => {
    const bytes = fresh();
    await upload({ name: 'new "ü".png', bytes });
    expect(routes()).toEqual(['byHash', 'upload']);
    const [question, sent] = asked();
    const hashText = `blake3:${hash(bytes).toString('hex')}`;
    expect(question).toMatchObject({ method: 'HEAD', path: expect.stringContaining('blake3%3A') });
    const { fields, file } = formOf(sent!.body);
    expect(fields.get('expected_hash')).toBe(hashText);
    expect(fields.get('content_type')).toBe('image/png');
    expect(fields.get('file_path')).toMatch(CONTENT_PATH);
    expect(file.equals(bytes)).toBe(true);
    expect(sent?.headers).toMatchObject({
      authorization: 'Bearer key-of-anna',
      'idempotency-key': expect.stringMatching(/.{36}/),
      'content-length': String(sent?.body.length),
    });
  });

  test.each([
    ['under its name', 'again.png', {}],
    ['over its name', 'again.png', { overwrite: 'true' }],
    ['under another name', 'another.png', {}],
    ['in another folder', 'again.png', { subfolder: 'deep' }],
    ['as another type', 'again.png', { type: 'temp' }],
  ])('of known bytes %s sends none', async (_how, name, fields) => {
    const bytes = fresh();
    await upload({ name: 'again.png', bytes, fields: { overwrite: 'true' } });
    upstream.journal.length = 0;
    const answer = await upload({ name, bytes, fields });
    expect(answer.name).toBe(name);
    expect(routes()).not.toContain('upload');
  });

  test('of bytes that vanish while they are asked about sends them', async () => {
    upstream.always('byHash', ({ res }) => void res.writeHead(200).end());
    const bytes = fresh();
    await upload({ name: 'raced.png', bytes });
    upstream.always('byHash', (exchange) => exchange.honestly());
    expect(routes()).toEqual(['byHash', 'fromHash', 'upload']);
    expect(await viewed('raced.png')).toEqual([200, bytes.toString()]);
  });

  test('damaged on the way is sent again', async () => {
    upstream.once('upload', fault.refuse(409, 'hash_mismatch'));
    const bytes = fresh();
    await upload({ name: 'damaged.png', bytes });
    expect(await viewed('damaged.png')).toEqual([200, bytes.toString()]);
  });

  test('whose answer was lost is not sent twice when it arrived', async () => {
    upstream.once('upload', async (exchange) => {
      const { fields, file } = formOf(exchange.body);
      upstream.blobs.set(fields.get('expected_hash') ?? '', file);
      await fault.reset()(exchange);
    });
    const bytes = fresh();
    await upload({ name: 'landed.png', bytes });
    expect(routes()).toEqual(['byHash', 'upload', 'byHash', 'fromHash']);
    expect(await viewed('landed.png')).toEqual([200, bytes.toString()]);
  });

  test.each([
    ['an upstream that is down', fault.reset(), 502],
    ['bytes damaged twice', fault.refuse(409, 'hash_mismatch'), 502],
    ['a file too large for it', fault.refuse(413, 'payload_too_large'), 413],
    ['a name it does not take', fault.refuse(422, 'invalid_request'), 400],
    ['a page of a proxy in between', fault.html(200), 502],
  ])('refused for %s: the name keeps its old bytes, nothing is left on disk', async (...row) => {
    const [what, hook, status] = row;
    const old = fresh();
    const name = `${what.replaceAll(' ', '-')}.png`;
    await upload({ name, bytes: old });
    upstream.always('upload', hook);
    const answer = await tryUpload({ name, bytes: fresh(), fields: { overwrite: 'true' } });
    expect(answer.status).toBe(status);
    expect(await answer.text()).not.toContain('127.0.0.1');
    expect(await viewed(name)).toEqual([200, old.toString()]);
    await expect.poll(() => readdir(join(holdover.dataDir, 'spool'))).toEqual([]);
  });

  test('that the upstream cuts off with 413 while it is sent leaves this server well', async () => {
    upstream.hasty.add('upload');
    onTestFinished(() => void upstream.hasty.delete('upload'));
    upstream.always('upload', ({ json }) =>
      json(413, error('payload_too_large'), { Connection: 'close' }),
    );
    const answer = await tryUpload({ name: 'large.png', bytes: Buffer.alloc(32 * 1024 * 1024, 7) });
    expect([413, 502]).toContain(answer.status);
    await expect.poll(() => readdir(join(holdover.dataDir, 'spool'))).toEqual([]);
    expect((await getJson(`${holdover.url}/queue`, anna)).queue_pending).toEqual([]);
    expect(holdover.log()).not.toContain('request failed');
  });
});

describe('one name', () => {
  const slowly: typeof keep = async (exchange) => {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 50));
    await keep(exchange);
  };

  test('for different bytes at once becomes as many names, each with its bytes', async () => {
    upstream.always('upload', slowly);
    const contents = Array.from({ length: 6 }, fresh);
    const answers = await Promise.all(contents.map((bytes) => upload({ name: 'one.png', bytes })));
    const names = answers.map(({ name }) => name);
    expect(names.toSorted()).toEqual(
      ['one.png', ...[1, 2, 3, 4, 5].map((n) => `one (${n}).png`)].toSorted(),
    );
    const seen = await Promise.all(names.map((name) => viewed(name)));
    expect(seen).toEqual(contents.map((bytes) => [200, bytes.toString()]));
  });

  test('that is overwritten by many at once has the bytes of one of them, whole', async () => {
    upstream.always('upload', slowly);
    const contents = Array.from({ length: 6 }, fresh);
    const fields = { overwrite: 'true' };
    await Promise.all(contents.map((bytes) => upload({ name: 'over.png', bytes, fields })));
    const [status, text] = await viewed('over.png');
    expect(status).toBe(200);
    expect(contents.map(String)).toContain(text);
  });

  test('for equal bytes at once is one file', async () => {
    upstream.always('upload', slowly);
    const bytes = fresh();
    const six = Array.from({ length: 6 }, () => upload({ name: 'equal.png', bytes }));
    expect(new Set((await Promise.all(six)).map(({ name }) => name))).toEqual(
      new Set(['equal.png']),
    );
    expect(await viewed('equal.png')).toEqual([200, bytes.toString()]);
  });

  test('whose bytes are gone upstream takes them again', async () => {
    const bytes = fresh();
    await upload({ name: 'gone.png', bytes });
    upstream.blobs.clear();
    upstream.always('asset', fault.refuse(404, 'asset_not_found'));
    onTestFinished(() => upstream.always('asset', (exchange) => exchange.honestly()));
    expect(await upload({ name: 'gone.png', bytes })).toMatchObject({ name: 'gone.png' });
    expect(routes()).toContain('upload');
  });
});

describe('users of one account', () => {
  test('share bytes only once each has sent them, and never names', async () => {
    const bytes = fresh();
    await upload({ name: 'secret.png', bytes }, anna, fixed);
    expect(await viewed('secret.png', ben, fixed)).toEqual([404, '']);
    const byHash = `blake3:${hash(bytes).toString('hex')}`;
    expect(await viewed(byHash, ben, fixed)).toEqual([404, '']);
    expect(await viewed(byHash, anna, fixed)).toEqual([200, bytes.toString()]);
    upstream.journal.length = 0;
    await upload({ name: 'own.png', bytes }, ben, fixed);
    expect(routes()).toEqual(['byHash', 'fromHash']);
    expect(await viewed('own.png', ben, fixed)).toEqual([200, bytes.toString()]);
    expect(await viewed('own.png', anna, fixed)).toEqual([404, '']);
    expect(JSON.stringify(upstream.journal)).not.toMatch(/key-of-(anna|ben)/);
  });
});

describe('what a prompt says of its files', () => {
  /** The inputs of the loader as they were sent upstream. */
  const loaded = (): unknown => {
    const [sent] = upstream.requests('submit').slice(-1);
    return JSON.parse(sent!.body.toString()).workflow['3'].inputs.image;
  };
  const prompt = async (name: string, to: Holdover) => {
    const { status, body } = await postPrompt(to.url, { prompt: loading(name) }, { headers: anna });
    expect([status, body.error]).toEqual([200, undefined]);
    return body.prompt_id as string;
  };
  const uploadedPath = (): string | undefined => {
    const [sent] = upstream.requests('upload').slice(-1);
    return formOf(sent!.body).fields.get('file_path');
  };

  test('as objects: the id of what was uploaded under that name', async () => {
    await upload({ name: 'object.png', bytes: fresh() });
    await prompt('object.png', holdover);
    const id = `record-${records.size}`;
    expect(loaded()).toMatchObject({ __type: 'core/ASSET', info: { id } });
  });

  test('as strings: the very path it was uploaded under, other bytes under another', async () => {
    const string = await startInFront(upstream, { args: ['--upstream-assets', 'string'] });
    onTestFinished(() => string.dispose());
    const paths = [];
    for (const fields of [{}, { overwrite: 'true' }]) {
      await upload({ name: 'string.png', bytes: fresh(), fields }, anna, string);
      await prompt('string.png', string);
      expect(loaded()).toBe(uploadedPath());
      paths.push(loaded());
    }
    expect(paths[0]).toMatch(CONTENT_PATH);
    expect(paths[0]).not.toBe(paths[1]);
  });

  const signed = (payload: object) =>
    `${Buffer.from(JSON.stringify(payload)).toString('base64url')}.c2lnbmF0dXJl`;
  test.each([
    ['the id', 'an-output-id', { __type: 'core/ASSET', info: { id: 'an-output-id' } }],
    [
      'the engine’s own name',
      signed({ f: 'made.png', s: 'deep', t: 'output' }),
      'deep/made.png [output]',
    ],
  ])('an output is named by %s the upstream knows it by', async (_what, id, expected) => {
    const pair = { upstream, holdover };
    const name = `made-${id.length}.png`;
    const { files } = await madeOutputs(pair, [{ id, name }], anna);
    const [file] = files;
    await prompt(`${posix.join(file?.subfolder ?? '', file?.filename ?? '')} [output]`, holdover);
    expect([loaded()]).toMatchObject([expected]);
  });

  /** The upload was kept for a while, and that is over. */
  const expired = (): string => {
    const id = `record-${records.size}`;
    upstream.once('submit', ({ json }) =>
      json(422, error('missing_asset', 'gone', { missing_ids: [id] })),
    );
    return id;
  };

  test('whose upload has expired: a new record of its bytes, once, under a new key', async () => {
    await upload({ name: 'expired.png', bytes: fresh() });
    const old = expired();
    upstream.journal.length = 0;
    await prompt('expired.png', holdover);
    expect(routes()).toEqual(['fromHash']);
    const keys = upstream.requests('submit').map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).toBe(2);
    expect(loaded()).toMatchObject({ info: { id: `record-${records.size}` } });
    expect(loaded()).not.toMatchObject({ info: { id: old } });
  });

  test('whose bytes are gone is sent again from its copy', async () => {
    await upload({ name: 'copied.png', bytes: fresh() });
    expired();
    upstream.blobs.clear();
    const sent = { prompt: loading('copied.png') };
    expect((await postPrompt(holdover.url, sent, { headers: anna })).status).toBe(200);
    expect(routes()).toContain('upload');
  });

  test('whose bytes are gone and not taken again: 400 that names the file', async () => {
    await upload({ name: 'lost.png', bytes: fresh() });
    expired();
    upstream.blobs.clear();
    upstream.once('upload', fault.refuse(413, 'payload_too_large'));
    const sent = { prompt: loading('lost.png') };
    const { status, body } = await postPrompt(holdover.url, sent, { headers: anna });
    expect(status).toBe(400);
    expect(JSON.stringify(body.node_errors)).toContain('lost.png');
  });
});
