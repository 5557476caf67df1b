import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { type CallOptions, call } from '../support/clients/raw-call.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat, loading } from '../support/graphs/workflows.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

// The assets API of v1, over a real server.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const ANN = { Authorization: 'Bearer ann' };
const BOB = { Authorization: 'Bearer bob' };
/** Each user has it from the start. */
const EXAMPLE = 'example.png';
const UNKNOWN_ID = '11111111-1111-4111-8111-111111111111';
const UNKNOWN_HASH = `blake3:${'0'.repeat(64)}`;

type Asset = {
  readonly id: string;
  readonly name: string;
  readonly asset_hash: string;
  readonly tags: readonly string[];
  readonly [member: string]: unknown;
};
type Answer = { readonly status: number; readonly body: any };

const server = useHoldover();

async function ask(path: string, options: CallOptions = {}): Promise<Answer> {
  const answer = await call(server.url, path, { headers: ANN, ...options });
  return { status: answer.status, body: answer.text === '' ? undefined : JSON.parse(answer.text) };
}

const send = (method: string, path: string, body: unknown, headers = ANN): Promise<Answer> =>
  ask(path, { method, headers, body: typeof body === 'string' ? body : JSON.stringify(body) });

async function post(
  fields: readonly (readonly [string, string])[],
  file?: { readonly bytes: string | Buffer; readonly name: string },
  headers = ANN,
): Promise<Answer> {
  const form = new FormData();
  for (const [name, value] of fields) form.append(name, value);
  if (file) form.append('file', new Blob([Uint8Array.from(Buffer.from(file.bytes))]), file.name);
  const answer = await fetch(`${server.url}/api/assets`, { method: 'POST', body: form, headers });
  return { status: answer.status, body: await answer.json() };
}

async function stored(name: string, more: readonly (readonly [string, string])[] = []) {
  const answer = await post([['tags', 'input'], ...more], { bytes: `bytes of ${name}`, name });
  expect(answer.status).toBe(201);
  return answer.body as Asset;
}

const names = ({ body }: Answer): string[] => body.assets.map(({ name }: Asset) => name);

describe('one asset', () => {
  test('is made, shown, renamed, tagged, read in part and deleted', async () => {
    const made = await post(
      [
        ['tags', '["input","first tag"]'],
        ['tags', 'second, third'],
        ['user_metadata', '{"rating":5,"seed":18446744073709551615}'],
      ],
      { bytes: await pngOf(), name: 'one.png' },
    );
    expect(made).toMatchObject({
      status: 201,
      body: {
        created_new: true,
        name: 'one.png',
        display_name: 'one.png',
        mime_type: 'image/png',
        tags: ['first tag', 'input', 'second', 'third', 'uploaded'],
        preview_url: '/api/view?type=input&filename=one.png',
      },
    });
    const { id, size, asset_hash: hash } = made.body;
    const path = `/api/assets/${id}`;
    expect(made.body.hash).toBe(hash);
    const text = (await call(server.url, path, { headers: ANN })).text;
    expect(text).toContain('"seed": 18446744073709551615');

    const changed = await send('PUT', path, { name: 'renamed "it".png', user_metadata: {} });
    expect(changed).toMatchObject({
      status: 200,
      body: { id, name: 'renamed "it".png', user_metadata: {}, display_name: 'one.png' },
    });
    expect(await send('POST', `${path}/tags`, { tags: ['new', 'second'] })).toMatchObject({
      status: 200,
      body: { added: ['new'], already_present: ['second'] },
    });
    expect(await send('DELETE', `${path}/tags`, { tags: ['second', 'x', 'input'] })).toEqual({
      status: 200,
      body: {
        removed: ['second'],
        not_present: ['x'],
        total_tags: ['first tag', 'input', 'new', 'third', 'uploaded'],
        protected: ['input'],
      },
    });

    const part = await call(server.url, `${path}/content`, {
      headers: { ...ANN, Range: 'bytes=0-3' },
    });
    expect([part.status, part.headers['content-range']]).toEqual([206, `bytes 0-3/${size}`]);
    expect(part.headers['content-disposition']).toBe('attachment; filename="renamed \\"it\\".png"');
    const inline = await call(server.url, `${path}/content?disposition=inline`, { headers: ANN });
    expect(inline.headers['content-disposition']).toBe('filename="one.png"');

    expect((await ask(path, { method: 'DELETE' })).status).toBe(204);
    for (const gone of [path, `${path}/content`])
      expect(await ask(gone)).toMatchObject({
        status: 404,
        body: { error: { code: 'ASSET_NOT_FOUND', details: { id } } },
      });
    expect((await ask(`/view?type=input&filename=one.png`)).status).toBe(404);
    expect((await ask(`/api/assets/hash/${hash}`, { method: 'HEAD' })).status).toBe(404);
  });

  test('is found by its hash, linked under another name, and lives on when the first is deleted', async () => {
    const first = await stored('linked.txt');
    const body = { hash: first.asset_hash, name: 'copy.txt', tags: ['input', 'copied'] };
    const linked = await send('POST', '/api/assets/from-hash', body);
    expect(linked).toMatchObject({ status: 201, body: { name: 'copy.txt', created_new: true } });
    expect(linked.body.id).not.toBe(first.id);
    const again = await send('POST', '/api/assets/from-hash', body);
    expect(again).toMatchObject({ status: 200, body: { id: linked.body.id, created_new: false } });
    const byForm = await post([
      ['hash', first.asset_hash],
      ['name', 'copy.txt'],
    ]);
    expect(byForm).toMatchObject({ status: 200, body: { id: linked.body.id } });
    const head = await ask(`/api/assets/hash/${first.asset_hash}`, { method: 'HEAD' });
    expect(head.status).toBe(200);
    expect((await ask(`/api/assets/${first.id}`, { method: 'DELETE' })).status).toBe(204);
    const content = await call(server.url, `/api/assets/${linked.body.id}/content`, {
      headers: ANN,
    });
    expect(content.text).toBe('bytes of linked.txt');
  });

  test('keeps its id and tags when its file is overwritten', async () => {
    const overwrite = async (bytes: string) => {
      const fields = { overwrite: 'true' };
      const file = { bytes: Buffer.from(bytes), name: 'same.txt', fields };
      return ((await uploadInput(server.url, file, ANN)) as unknown as { asset: Asset }).asset;
    };
    const before = await overwrite('before');
    await send('POST', `/api/assets/${before.id}/tags`, { tags: ['kept'] });
    const after = await overwrite('after');
    expect(after).toMatchObject({ id: before.id, tags: ['input', 'kept', 'uploaded'] });
    expect(after.asset_hash).not.toBe(before.asset_hash);
  });

  test('of the example cannot be deleted', async () => {
    const { body } = await ask('/api/assets?name_contains=example');
    const path = `/api/assets/${body.assets[0].id}`;
    expect((await ask(path, { method: 'DELETE' })).status).toBe(409);
    expect((await ask(path)).status).toBe(200);
  });

  test('of another file is its preview', async () => {
    const [picture, text] = [await stored('shown.png'), await stored('text.bin')];
    const changed = await send('PUT', `/api/assets/${text.id}`, { preview_id: picture.id });
    expect(changed.body).toMatchObject({
      preview_id: picture.id,
      preview_url: '/api/view?type=input&filename=shown.png',
    });
  });
});

describe('lists', () => {
  const CAROL = { Authorization: 'Bearer carol' };
  const list = (query: string) => ask(`/api/assets?${query}`, { headers: CAROL });
  beforeAll(async () => {
    for (const [name, tags] of [
      ['a.txt', 'input,red'],
      ['b.txt', 'input,red,big'],
      ['B2.txt', 'input,big'],
      ['out.txt', 'output'],
    ] as const) {
      await post([['tags', tags]], { bytes: name.repeat(name.length), name }, CAROL);
      await delay(2);
    }
  });

  test.each([
    ['', ['out.txt', 'B2.txt', 'b.txt', 'a.txt', EXAMPLE]],
    ['include_tags=red', ['b.txt', 'a.txt']],
    ['include_tags=red,big', ['b.txt']],
    ['include_tags=red&include_tags=big', ['b.txt']],
    ['exclude_tags=red', ['out.txt', 'B2.txt', EXAMPLE]],
    ['tags_all=big&tags_none=red', ['B2.txt']],
    ['tags_any=red,output&order=asc', ['a.txt', 'b.txt', 'out.txt']],
    ['include_tags=red&tags_none=big', ['a.txt']],
    ['include_tags=red&exclude_tags=red', []],
    ['name_contains=b', ['B2.txt', 'b.txt']],
    ['sort=name&order=asc', ['B2.txt', 'a.txt', 'b.txt', EXAMPLE, 'out.txt']],
    ['sort=size', [EXAMPLE, 'out.txt', 'B2.txt', 'b.txt', 'a.txt']],
    ['offset=1&limit=2', ['B2.txt', 'b.txt']],
    ['offset=99', []],
    [`hash=${UNKNOWN_HASH}`, []],
    ['hash=B2.txt', ['B2.txt']],
  ])('%s', async (query, expected) => {
    expect(names(await list(query))).toEqual(expected);
  });

  test.each(['created_at', 'name', 'size', 'updated_at'])(
    'sorted by %s: a walk by cursor lists each asset once',
    async (sort) => {
      for (const order of ['asc', 'desc']) {
        const whole = await list(`sort=${sort}&order=${order}`);
        const walked: string[] = [];
        for (let after = ''; ;) {
          const page = await list(`sort=${sort}&order=${order}&limit=1${after}`);
          walked.push(...names(page));
          const { next_cursor: cursor, has_more: hasMore, total } = page.body;
          expect([hasMore, total]).toEqual([cursor !== undefined, 5]);
          if (cursor === undefined) break;
          after = `&after=${cursor}`;
        }
        expect(walked).toEqual(names(whole));
      }
    },
  );

  test('of tags count the assets that have them', async () => {
    const tags = async (query: string) =>
      (await ask(`/api/tags?${query}`, { headers: CAROL })).body as {
        tags: { name: string; count: number }[];
        has_more: boolean;
      };
    expect(await tags('')).toEqual({
      tags: [
        { name: 'input', count: 4 },
        { name: 'uploaded', count: 4 },
        { name: 'big', count: 2 },
        { name: 'red', count: 2 },
        { name: 'output', count: 1 },
      ],
      total: 5,
      has_more: false,
    });
    expect((await tags('order=name_asc&limit=1&offset=1')).tags).toEqual([
      { name: 'input', count: 4 },
    ]);
    expect((await tags('prefix=re')).tags).toEqual([{ name: 'red', count: 2 }]);
    const refined = await ask('/api/assets/tags/refine?tags_all=big', { headers: CAROL });
    expect(refined.body).toEqual({ tag_counts: { big: 2, input: 2, uploaded: 2, red: 1 } });
  });
});

describe('outputs of a run', () => {
  test('have the ids of their assets in frames and history; a deleted one keeps its name', async () => {
    const socket = await connect(server.wsUrl, { headers: ANN });
    const graph = flat();
    const { body } = await postPrompt(
      server.url,
      { prompt: graph, client_id: 'test-client' },
      { headers: ANN },
    );
    await socket.untilDone(body.prompt_id as string);
    const executed = await socket.until(
      (frame) => frame.kind === 'text' && frame.type === 'executed',
    );
    await socket.close();
    const [file] = (executed as { data: any }).data.output.images;
    const outputs = async () =>
      (await getJson(`${server.url}/history/${body.prompt_id}`, ANN))[body.prompt_id].outputs;
    expect(Object.values(await outputs())).toEqual([{ images: [file] }]);
    const shown = await ask(`/api/assets/${file.id}`);
    expect(shown.body).toMatchObject({ id: file.id, name: file.filename, tags: ['output'] });
    const view = `/view?filename=${shown.body.asset_hash}`;
    expect((await call(server.url, view, { headers: ANN })).status).toBe(200);

    expect((await ask(`/api/assets/${file.id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await ask(`/api/assets/${file.id}`)).status).toBe(404);
    const named = `/view?filename=${file.filename}&type=output`;
    expect((await call(server.url, named, { headers: ANN })).status).toBe(404);
    expect(Object.values(await outputs())).toEqual([{ images: [file] }]);
  });

  test('a loader takes the hash of a file as its name', async () => {
    const made = await post([], { bytes: await pngOf(), name: 'by-hash.png' });
    const { body } = await postPrompt(
      server.url,
      { prompt: loading(made.body.asset_hash) },
      { headers: ANN },
    );
    const status = async () =>
      (await getJson(`${server.url}/api/job/${body.prompt_id}/status`, ANN)).status;
    await expect.poll(status).toBe('success');
    const other = await postPrompt(
      server.url,
      { prompt: loading(made.body.asset_hash) },
      { headers: BOB },
    );
    expect(other.status).toBe(400);
  });
});

describe('another user', () => {
  test('sees, reads and changes none of the assets, not even by their hash', async () => {
    const asset = await stored('secret.txt', [['tags', 'secret-tag']]);
    const path = `/api/assets/${asset.id}`;
    expect(names(await ask('/api/assets', { headers: BOB }))).toEqual([EXAMPLE]);
    expect((await ask('/api/tags?prefix=secret', { headers: BOB })).body.tags).toEqual([]);
    const refused = [
      await ask(path, { headers: BOB }),
      await ask(`${path}/content`, { headers: BOB }),
      await ask(path, { method: 'DELETE', headers: BOB }),
      await send('PUT', path, { name: 'x' }, BOB),
      await send('POST', `${path}/tags`, { tags: ['x'] }, BOB),
      await send('DELETE', `${path}/tags`, { tags: ['secret-tag'] }, BOB),
      await send('POST', '/api/assets/from-hash', { hash: asset.asset_hash, tags: [] }, BOB),
      await post([['hash', asset.asset_hash]], undefined, BOB),
      await ask(`/api/assets/hash/${asset.asset_hash}`, { method: 'HEAD', headers: BOB }),
    ];
    expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 404));
    const view = `/view?filename=${asset.asset_hash}`;
    expect((await call(server.url, view, { headers: BOB })).status).toBe(404);
    const own = await post([], { bytes: 'own', name: 'secret.txt' }, BOB);
    expect(own.body.id).not.toBe(asset.id);
    const foreign = await send('PUT', `/api/assets/${own.body.id}`, { preview_id: asset.id }, BOB);
    expect(foreign.status).toBe(404);
    expect((await ask(path)).body).toEqual(expect.objectContaining({ name: 'secret.txt' }));
  });
});

describe('bad input', () => {
  const longTag = 'x'.repeat(513);
  const tagList = (n: number) => Array.from({ length: n }, (_, i) => `t${i}`).join(',');
  test.each([
    ['GET', '/api/assets?limit=0', undefined, 400, 'INVALID_QUERY'],
    ['GET', '/api/assets?limit=501', undefined, 400, 'INVALID_QUERY'],
    ['GET', `/api/assets?limit=${'9'.repeat(400)}`, undefined, 400, 'INVALID_QUERY'],
    ['GET', '/api/assets?offset=-1', undefined, 400, 'INVALID_QUERY'],
    ['GET', '/api/assets?offset=1e3', undefined, 400, 'INVALID_QUERY'],
    ['GET', '/api/assets?sort=__proto__', undefined, 400, 'INVALID_QUERY'],
    ['GET', '/api/assets?order=up', undefined, 400, 'INVALID_QUERY'],
    ['GET', '/api/assets?after=x', undefined, 400, 'INVALID_CURSOR'],
    ['GET', `/api/assets?after=${'e30'.repeat(4000)}`, undefined, 400, 'INVALID_CURSOR'],
    ['GET', '/api/assets?sort=last_access_time&after=e30', undefined, 400, 'INVALID_CURSOR'],
    ['GET', '/api/assets?metadata_filter={}', undefined, 400, 'UNSUPPORTED_PARAM'],
    ['GET', `/api/assets?tags_any=${tagList(101)}`, undefined, 400, 'INVALID_TAG_FILTER'],
    ['GET', '/api/assets?tags_all=a&include_tags=b', undefined, 400, 'INVALID_TAG_FILTER'],
    ['GET', '/api/assets?tags_all=a&tags_none=a', undefined, 400, 'INVALID_TAG_FILTER'],
    ['GET', '/api/tags?limit=1001', undefined, 400, 'INVALID_QUERY'],
    ['GET', `/api/assets/${UNKNOWN_ID}`, undefined, 404, 'ASSET_NOT_FOUND'],
    ['GET', '/api/assets/__proto__', undefined, 404, 'ASSET_NOT_FOUND'],
    ['GET', '/api/assets/..%2f..%2fetc%2fpasswd', undefined, 404, 'ASSET_NOT_FOUND'],
    ['PUT', `/api/assets/${UNKNOWN_ID}`, '{"name":"x"}', 404, 'ASSET_NOT_FOUND'],
    ['POST', '/api/assets/from-hash', '{', 400, 'INVALID_JSON'],
    ['POST', '/api/assets/from-hash', '[]', 400, 'INVALID_BODY'],
    ['POST', '/api/assets/from-hash', '{"hash":"md5:1","tags":[]}', 400, 'INVALID_HASH'],
    ['POST', '/api/assets/from-hash', `{"hash":"${UNKNOWN_HASH}"}`, 404, 'ASSET_NOT_FOUND'],
    ['POST', '/api/assets', '{"url":"http://127.0.0.1/"}', 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['PUT', ':own', '{}', 400, 'INVALID_BODY'],
    ['PUT', ':own', '{"name":"a\\u0000b"}', 400, 'INVALID_BODY'],
    ['PUT', ':own', `{"name":"${longTag}"}`, 400, 'INVALID_BODY'],
    ['PUT', ':own', '{"user_metadata":[]}', 400, 'INVALID_BODY'],
    ['PUT', ':own', `{"user_metadata":{"a":"${'x'.repeat(20_000)}"}}`, 400, 'INVALID_BODY'],
    ['PUT', ':own', '{"preview_id":7}', 400, 'INVALID_BODY'],
    ['PUT', ':own', `{"preview_id":"${UNKNOWN_ID}"}`, 404, 'ASSET_NOT_FOUND'],
    ['POST', ':own/tags', '{"tags":[]}', 400, 'INVALID_BODY'],
    ['POST', ':own/tags', '{"tags":"a"}', 400, 'INVALID_BODY'],
    ['POST', ':own/tags', '{"tags":["a\\u0007b"]}', 400, 'INVALID_BODY'],
    ['POST', ':own/tags', '{"tags":[{"a":1}]}', 400, 'INVALID_BODY'],
    ['POST', ':own/tags', `{"tags":["${longTag}"]}`, 400, 'INVALID_BODY'],
    ['POST', ':own/tags', '{"tags":["missing"]}', 400, 'SYSTEM_TAG_FORBIDDEN'],
  ])('%s %s %s', async (method, path, body, status, code) => {
    const { id } = await stored('bad.txt').catch(
      async () => (await ask('/api/assets')).body.assets[0],
    );
    const answer = await ask(path.replace(':own', `/api/assets/${id}`), {
      method,
      ...(body !== undefined && { body }),
    });
    expect(answer).toMatchObject({ status, body: { error: { code } } });
  });

  test.each([
    [[['tags', 'models,model_type:vae']], 'x', 'INVALID_BODY'],
    [[['user_metadata', '[1']], 'x', 'INVALID_BODY'],
    [[['hash', 'blake3:1']], 'x', 'INVALID_HASH'],
    [[['hash', UNKNOWN_HASH]], 'x', 'HASH_MISMATCH'],
    [[['tags', 'input']], undefined, 'MISSING_FILE'],
    [[['tags', 'input']], '', 'EMPTY_UPLOAD'],
    [[['name', 'a\u0001b']], 'x', 'INVALID_BODY'],
    [[['preview_id', UNKNOWN_ID]], 'x', 'INVALID_BODY'],
  ] as const)('a form with %j', async (fields, bytes, code) => {
    const file = bytes === undefined ? undefined : { bytes, name: 'f.txt' };
    expect(await post(fields, file)).toMatchObject({ status: 400, body: { error: { code } } });
  });

  test('a name that is a path becomes a label, not a place', async () => {
    const made = await post([['name', '../../etc/passwd']], { bytes: 'p', name: 'p.txt' });
    expect(made.body.name).toBe('../../etc/passwd');
    expect(made.body.display_name).toMatch(/^[0-9a-f]{64}\.txt$/);
  });

  test('the name of the file has the limits of a given one', async () => {
    const made = await post([], { bytes: 'l', name: `${longTag}.txt` });
    expect(made).toMatchObject({ status: 400, body: { error: { code: 'INVALID_BODY' } } });
  });
});

describe('scans', () => {
  test('end at once: there is nothing to scan', async () => {
    expect([
      await send('POST', '/api/assets/seed', {}),
      await send('POST', '/api/assets/seed?wait=true', {}),
      await ask('/api/assets/seed/status'),
      await send('POST', '/api/assets/seed/cancel', {}),
      await send('POST', '/api/assets/prune', {}),
    ]).toEqual([
      { status: 202, body: { status: 'started' } },
      {
        status: 200,
        body: {
          status: 'completed',
          progress: { scanned: 0, total: 0, created: 0, skipped: 0 },
          errors: [],
        },
      },
      { status: 200, body: { state: 'IDLE', progress: null, errors: [] } },
      { status: 200, body: { status: 'idle' } },
      { status: 200, body: { status: 'completed', marked: 0 } },
    ]);
  });
});

describe('in hosted form', () => {
  test('errors are a code and a message', async () => {
    const hosted = { 'X-API-Key': 'dora' };
    const made = await post([['tags', 'input']], { bytes: 'h', name: 'h.txt' }, hosted as never);
    expect(made.status).toBe(201);
    const missing = await ask(`/api/assets/${UNKNOWN_ID}`, { headers: hosted });
    expect(missing).toEqual({
      status: 404,
      body: { code: 'ASSET_NOT_FOUND', message: expect.any(String) },
    });
  });
});
