import { afterEach, describe, expect, test } from 'vitest';
import { type OpenRouter, errorOf, model, openRouter, said } from './open.ts';

let router: OpenRouter;
afterEach(() => router.close());

const named = (...names: string[]) => names.map((name) => model({ model: name }));
const many = (count: number) =>
  named(...Array.from({ length: count }, (_, i) => `m${String(i).padStart(3, '0')}`));
describe('GET /v1/models', () => {
  test('answers one page of entries in the order of their ids, with the facts of billing', async () => {
    router = await openRouter({ models: named('b', 'a') });
    const { status, json, headers } = await router.call('/v1/models');
    expect(status).toBe(200);
    const billing = { charges_on_policy_rejection: 'no' };
    expect(json).toEqual({
      data: [
        { id: 'test/a', provider: 'test', model: 'a', billing },
        { id: 'test/b', provider: 'test', model: 'b', billing },
      ],
      has_more: false,
      limit: 20,
    });
    expect(headers.get('x-service-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('x-comfy-request-id')).toBe(headers.get('x-service-request-id'));
    expect(headers.get('x-service-error-type')).toBeNull();
  });

  test.each([
    ['', 20],
    ['?limit=1', 1],
    ['?limit=100', 100],
    ['?limit=101', 100],
    ['?limit=0', 20],
    ['?limit=-5', 20],
  ])('%s serves pages of %i', async (query, limit) => {
    router = await openRouter({ models: many(120) });
    const { status, json } = await router.call(`/v1/models${query}`);
    expect([status, json.limit, json.data.length, json.has_more]).toEqual([
      200,
      limit,
      limit,
      true,
    ]);
  });

  test.each(['?limit=1.5', '?limit=', '?limit=1&limit=2'])(
    '%s is a 400 invalid_input',
    async (query) => {
      router = await openRouter();
      expect(errorOf(await router.call(`/v1/models${query}`))).toEqual(said(400, 'invalid_input'));
    },
  );

  test('the last page has no cursor', async () => {
    router = await openRouter({ models: many(2) });
    const { json } = await router.call('/v1/models?limit=2');
    expect(json).not.toHaveProperty('next_cursor');
    expect(json.has_more).toBe(false);
  });

  test.each([
    ['empty', ''],
    ['an id', 'test/m001'],
    ['an id in base64', Buffer.from('test/m001').toString('base64url')],
    ['too long', 'x'.repeat(513)],
    ['with foreign characters', '%00%F0%9F%A6%8A'],
  ])('a cursor that is %s is a 400 invalid_input, never the first page', async (_, cursor) => {
    router = await openRouter({ models: many(5) });
    const answer = await router.call(`/v1/models?cursor=${cursor}`);
    expect(errorOf(answer)).toEqual(said(400, 'invalid_input'));
  });

  test('two cursors are a 400 invalid_input', async () => {
    router = await openRouter({ models: many(3) });
    const { json } = await router.call('/v1/models?limit=1');
    const answer = await router.call(
      `/v1/models?cursor=${json.next_cursor}&cursor=${json.next_cursor}`,
    );
    expect(errorOf(answer)).toEqual(said(400, 'invalid_input'));
  });

  test('the same is served under /v2/models, where the clients of today look', async () => {
    router = await openRouter();
    const [old, now] = [await router.call('/v1/models'), await router.call('/v2/models')];
    expect(now.json).toEqual(old.json);
  });

  test.each(['/v1/modelsx', '/v1/model', '/v3/models', '/api/v1/models'])(
    '%s is none of the routes: it goes on to what comes next',
    async (path) => {
      router = await openRouter();
      const answer = await router.call(path);
      expect(answer.status).toBe(404);
      expect(answer.headers.get('x-service-request-id')).toBeNull();
    },
  );

  test.each([
    ['/v1/models', 'POST', 'GET, HEAD'],
    ['/v1/models/test/echo', 'DELETE', 'GET, HEAD, POST'],
    ['/v1/models/test/echo/openapi.json', 'POST', 'GET, HEAD'],
  ])('%s answers %s with a 405 that says what may be', async (path, method, allowed) => {
    router = await openRouter();
    const answer = await router.call(path, { method });
    expect(errorOf(answer)).toEqual(said(405, 'invalid_input'));
    expect(answer.headers.get('allow')).toBe(allowed);
  });

  test('HEAD answers the headers alone', async () => {
    router = await openRouter();
    const answer = await router.call('/v1/models', { method: 'HEAD' });
    expect([answer.status, answer.text]).toEqual([200, '']);
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
  });
});

describe('GET /v1/models/{provider}/{model}', () => {
  test('answers the entry; without https there is no schema address to show', async () => {
    router = await openRouter({ models: named('a') });
    const list = (await router.call('/v1/models')).json;
    const { status, json } = await router.call('/v1/models/test/a');
    expect([status, json]).toEqual([200, list.data[0]]);
  });

  test('over https the entry names the schema document, where one is written', async () => {
    router = await openRouter({
      models: [model({ model: 'a', input: { type: 'object' } }), ...named('open')],
      proxy: { trustedProxies: ['loopback'] },
    });
    const headers = {
      'X-Forwarded-Proto': 'https',
      'X-Forwarded-Host': 'comfy.example.com:8443',
      'X-Forwarded-Prefix': '/comfy',
    };
    const { json } = await router.call('/v1/models/test/a', { headers });
    expect(json.input_schema_url).toBe(
      'https://comfy.example.com:8443/comfy/v1/models/test/a/openapi.json',
    );
    const open = await router.call('/v1/models/test/open', { headers });
    expect(open.json).not.toHaveProperty('input_schema_url');
    const plain = await router.call('/v1/models/test/a');
    expect(plain.json).not.toHaveProperty('input_schema_url');
    expect((await router.call('/v1/models/test/a/openapi.json')).status).toBe(200);
  });

  test.each([
    ['an unknown model', 'test/ecko'],
    ['an unknown provider', 'unknown/echo'],
    ['a variant', 'test/echo/fast'],
    ['an encoded slash', 'test%2Fecho'],
    ['an endless name', `test/${'x'.repeat(300)}`],
    ['a trailing slash', 'test/echo/'],
    ['__proto__', '__proto__/__proto__'],
  ])('%s is a 404 model_not_found', async (_, id) => {
    router = await openRouter();
    expect(errorOf(await router.call(`/v1/models/${id}`))).toEqual(said(404, 'model_not_found'));
  });

  test('a 404 suggests up to three models that are spelled alike', async () => {
    router = await openRouter({
      models: named('image-blur', 'image-resize', 'image-rotate', 'image-flip', 'speech'),
    });
    const { json } = await router.call('/v1/models/test/image-resise');
    expect(json.detail).toMatch(/image-resise.*image-resize, test\/image-\w+, test\/image-\w+\?$/);
    expect(json.detail).not.toContain('speech');
  });

  test('a wrong id is repeated only if it could be one', async () => {
    router = await openRouter();
    const { json } = await router.call('/v1/models/test/%3Cscript%3E');
    expect(json.detail).not.toContain('script');
  });
});
