import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDeferred } from '../../src/lib/concurrency.ts';
import { readKeys } from '../../src/router/keys.ts';
import { createMemoryLedger } from '../support/app/memory-ledger.ts';
import { type OpenRouter, errorOf, model, openRouter, said, steppedModel } from './open.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

let router: OpenRouter | undefined;
let dir: string;
beforeEach(async () => {
  dir = await tempFolder('models');
});
afterEach(async () => {
  await router?.close();
  router = undefined;
});

async function keysFile(value: unknown): Promise<string> {
  const path = join(dir, 'keys.json');
  await writeFile(path, typeof value === 'string' ? value : JSON.stringify(value));
  return path;
}

const ROUTES = [
  ['GET', '/v1/models'],
  ['GET', '/v1/models/test/echo'],
  ['POST', '/v1/models/test/echo'],
  ['GET', '/v1/models/test/echo/openapi.json'],
] as const;

/** One of the four routes, as the user of these headers. */
async function visit(
  open: OpenRouter,
  [method, path]: readonly [string, string],
  headers: Record<string, string>,
) {
  const response = await fetch(open.url + path, {
    method,
    headers,
    ...(method === 'POST' && { body: '{}' }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text && JSON.parse(text),
  };
}

describe('without configured keys', () => {
  test.each(ROUTES)('%s %s without a credential is a 401 unauthorized', async (...route) => {
    router = await openRouter();
    const answer = await visit(router, route, {});
    expect(errorOf(answer)).toEqual(said(401, 'unauthorized'));
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
  });

  test.each([
    ['an empty key', { 'X-API-Key': '' }],
    ['an empty Bearer', { Authorization: 'Bearer ' }],
    ['Basic', { Authorization: `Basic ${Buffer.from('ann:x').toString('base64')}` }],
  ])('%s is no credential', async (_, headers) => {
    router = await openRouter();
    expect((await visit(router, ROUTES[0], headers)).status).toBe(401);
  });

  test.each(ROUTES)('%s %s is served to any credential, in either header', async (...route) => {
    router = await openRouter();
    expect((await visit(router, route, { 'X-API-Key': 'any' })).status).toBe(200);
    expect((await visit(router, route, { Authorization: 'Bearer eyJ.any.thing' })).status).toBe(
      200,
    );
  });

  test('the key in X-API-Key wins over the Bearer', async () => {
    router = await openRouter();
    const headers = { 'X-API-Key': 'ann', Authorization: 'Bearer bob' };
    const answer = await visit(router, ROUTES[2], headers);
    const row = await router.ledger.modelCalls.get(
      answer.headers.get('x-service-request-id') ?? '',
    );
    expect(row?.user).toBe('user of ann');
  });

  test('a server that lets in only the holders of its own token is asked', async () => {
    router = await openRouter({
      callerOf: (key) => (key === 'token' ? { user: 'local' } : undefined),
    });
    expect(errorOf(await router.call('/v1/models'))).toEqual(said(401, 'unauthorized'));
    expect((await router.call('/v1/models', { headers: { 'X-API-Key': 'token' } })).status).toBe(
      200,
    );
  });
});

describe('with configured keys', () => {
  const KEYS = {
    keys: [
      { key: 'comfyui-ann', workspace: 'studio' },
      { key: 'comfyui-ben', workspace: 'studio' },
      { key: 'comfyui-few', workspace: 'few', models: ['test/echo'] },
      { key: 'comfyui-all', workspace: 'all', models: ['test/*'] },
      { key: 'comfyui-off', workspace: 'off', enabled: false },
      {
        key: `sha256:${createHash('sha256').update('comfyui-hidden').digest('hex')}`,
        workspace: 'hidden',
      },
    ],
  };
  const open = async (models = [model({ model: 'echo' }), model({ model: 'other' })]) => {
    router = await openRouter({ models, keysFile: await keysFile(KEYS) });
    return router;
  };
  const as = (key: string) => ({ headers: { 'X-API-Key': key } });

  test.each([
    ['as Bearer', { Authorization: 'Bearer comfyui-ann' }],
    [
      'in X-API-Key beside a wrong Bearer',
      { 'X-API-Key': 'comfyui-ann', Authorization: 'Bearer x' },
    ],
  ])('a known key %s is let in', async (_, headers) => {
    expect((await visit(await open(), ROUTES[0], headers)).status).toBe(200);
  });

  test('a key known by its digest alone is let in', async () => {
    expect((await (await open()).call('/v1/models', as('comfyui-hidden'))).status).toBe(200);
  });

  test.each([
    ['an unknown key', { 'X-API-Key': 'comfyui-eve' }],
    [
      'an unknown key before a known Bearer',
      { 'X-API-Key': 'comfyui-eve', Authorization: 'Bearer comfyui-ann' },
    ],
    [
      'a value without the prefix, taken for a token',
      { Authorization: 'Bearer eyJhbGciOi.J9.sig' },
    ],
    ['a digest', { 'X-API-Key': KEYS.keys[5]?.key ?? '' }],
  ])('%s is a 401 unauthorized', async (_, headers) => {
    expect(errorOf(await visit(await open(), ROUTES[0], headers))).toEqual(
      said(401, 'unauthorized'),
    );
  });

  test.each(ROUTES)('%s %s is a 403 not_enabled where the router is off', async (...route) => {
    const answer = await visit(await open(), route, { 'X-API-Key': 'comfyui-off' });
    expect(errorOf(answer)).toEqual(said(403, 'not_enabled'));
  });

  test.each([
    ['GET', '/v1/models/test/other'],
    ['POST', '/v1/models/test/other'],
    ['GET', '/v1/models/test/other/openapi.json'],
  ] as const)('%s %s is a 403 forbidden without an entitlement', async (...route) => {
    const answer = await visit(await open(), route, { 'X-API-Key': 'comfyui-few' });
    expect(errorOf(answer)).toEqual(said(403, 'forbidden'));
  });

  test('the catalogue shows and suggests what the key covers', async () => {
    const { call } = await open();
    const ids = async (key: string) =>
      (await call('/v1/models', as(key))).json.data.map(({ id }: { id: string }) => id);
    expect(await ids('comfyui-few')).toEqual(['test/echo']);
    expect(await ids('comfyui-all')).toEqual(['test/echo', 'test/other']);
    const { json } = await call('/v1/models/test/otter', as('comfyui-few'));
    expect(json.detail).not.toContain('test/other');
  });

  test('keys of one workspace share its place for running calls', async () => {
    const { def, begun, answer } = steppedModel();
    const path = await keysFile({ keys: KEYS.keys.map((each) => ({ ...each, in_flight: 1 })) });
    router = await openRouter({ models: [def], keysFile: path });
    const first = router.run('test/stepped', {}, { 'X-API-Key': 'comfyui-ann' });
    await begun(1);
    const second = await router.run('test/stepped', {}, { 'X-API-Key': 'comfyui-ben' });
    expect(errorOf(second)).toEqual(said(429, 'concurrency_limit_exceeded'));
    answer();
    await first;
  });

  test('a workspace without credits left is a 402 insufficient_credits', async () => {
    const path = await keysFile({
      keys: [{ key: 'comfyui-ann', workspace: 'w', credits_cents: 10 }],
    });
    const priced = model({ model: 'priced', priceCents: () => 6 });
    router = await openRouter({ models: [priced, model({ model: 'free' })], keysFile: path });
    const key = { 'X-API-Key': 'comfyui-ann' };
    expect((await router.run('test/priced', {}, key)).status).toBe(200);
    expect(errorOf(await router.run('test/priced', {}, key))).toEqual(
      said(402, 'insufficient_credits'),
    );
    expect((await router.run('test/free', {}, key)).status).toBe(200);
  });

  test('a call counts as running until its charge is on record', async () => {
    const path = await keysFile({
      keys: [{ key: 'comfyui-ann', workspace: 'w', credits_cents: 10 }],
    });
    const ledger = createMemoryLedger();
    const [isReached, mayGoOn] = [createDeferred(), createDeferred()];
    const insert: typeof ledger.modelCalls.insert = async (row) => {
      isReached.resolve();
      if (row.status === 200) await mayGoOn.promise;
      await ledger.modelCalls.insert(row);
    };
    const modelCalls = { ...ledger.modelCalls, insert };
    const models = [model({ model: 'priced', priceCents: () => 6 })];
    router = await openRouter({ models, keysFile: path, ledger: { ...ledger, modelCalls } });
    const key = { 'X-API-Key': 'comfyui-ann' };
    const first = router.run('test/priced', {}, key);
    await isReached.promise;
    expect(errorOf(await router.run('test/priced', {}, key))).toEqual(
      said(402, 'insufficient_credits'),
    );
    mayGoOn.resolve();
    expect((await first).status).toBe(200);
  });
});

describe('a keys file', () => {
  test.each([
    ['that is not there', undefined, 'cannot be read'],
    ['that is no JSON', '{', 'the file'],
    ['without keys', {}, 'keys'],
    [
      'with an unknown field',
      { keys: [{ key: 'comfyui-x', workspace: 'w', creditz: 1 }] },
      'keys.0',
    ],
    ['with a key without the prefix', { keys: [{ key: 'sk-secret', workspace: 'w' }] }, 'key 1'],
    [
      'with a negative limit',
      { keys: [{ key: 'comfyui-x', workspace: 'w', in_flight: -1 }] },
      'in_flight',
    ],
  ])('%s is refused, and its keys are not shown', async (_, value, reason) => {
    const path = value === undefined ? join(dir, 'none.json') : await keysFile(value);
    expect(() => readKeys(path)).toThrow(reason);
    expect(() => readKeys(path)).not.toThrow('secret');
  });

  test('may name a prefix of its own', async () => {
    const keys = readKeys(
      await keysFile({ prefix: 'sk-', keys: [{ key: 'sk-1', workspace: 'w' }] }),
    );
    expect([keys.prefix, keys.find('sk-1')]).toEqual(['sk-', { workspace: 'w' }]);
  });
});

describe('429', () => {
  test('at the in-flight limit of a workspace, until one of its calls finishes', async () => {
    const { def, begun, answer } = steppedModel();
    router = await openRouter({ models: [def], limits: { inFlight: 2 } });
    const running = [router.run('test/stepped', {}), router.run('test/stepped', {})];
    await begun(2);
    const refused = await router.run('test/stepped', {});
    expect(errorOf(refused)).toEqual(said(429, 'concurrency_limit_exceeded'));
    expect(refused.json.detail).toMatch(/in-flight/i);
    expect(refused.headers.get('x-committed-spend-limit')).toBeNull();
    answer();
    await Promise.race(running);
    const next = router.run('test/stepped', {});
    await begun(3);
    answer();
    answer();
    expect((await next).status).toBe(200);
    await Promise.all(running);
  });

  test('at the committed-spend ceiling, with the three headers in whole cents', async () => {
    const { def, begun, answer } = steppedModel('stepped', {
      priceCents: (input) => Number(input.cents),
    });
    router = await openRouter({ models: [def], limits: { committedCents: 100 } });
    const first = router.run('test/stepped', { cents: 70 });
    await begun(1);
    const refused = await router.run('test/stepped', { cents: 40 });
    expect(errorOf(refused)).toEqual(said(429, 'concurrency_limit_exceeded'));
    expect(refused.json.detail).toMatch(/spend/i);
    const spend = ['limit', 'current', 'remaining'].map((name) =>
      refused.headers.get(`x-committed-spend-${name}`),
    );
    expect(spend).toEqual(['100', '70', '30']);
    const fits = router.run('test/stepped', { cents: 30 });
    await begun(2);
    answer();
    expect((await first).status).toBe(200);
    // The spend that the finished call had committed is free again, while the other still runs.
    const after = router.run('test/stepped', { cents: 70 });
    await begun(3);
    answer();
    answer();
    expect([(await fits).status, (await after).status]).toEqual([200, 200]);
  });

  test('rate_limited counts all four routes, whether a model ran or not, and names its window', async () => {
    router = await openRouter({ limits: { requestsPerMinute: ROUTES.length + 1 } });
    for (const route of ROUTES) await visit(router, route, { 'X-API-Key': 'ann' });
    expect((await router.call('/v1/models/test/none')).status).toBe(404);
    for (const route of ROUTES) {
      const answer = await visit(router, route, { 'X-API-Key': 'ann' });
      expect(errorOf(answer)).toEqual(said(429, 'rate_limited'));
      expect(answer.json.detail).toContain('60 seconds');
      expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
  });

  test('after Retry-After there is an allowance again, and after a minute all of it', async () => {
    router = await openRouter({ limits: { requestsPerMinute: 6 } });
    const statuses = async (count: number) => {
      const seen = [];
      for (let i = 0; i < count; i++) seen.push((await router?.call('/v1/models'))?.status);
      return seen;
    };
    expect(await statuses(6)).toEqual([200, 200, 200, 200, 200, 200]);
    const refused = await router.call('/v1/models');
    expect(refused.headers.get('retry-after')).toBe('10');
    router.advance(10_000);
    expect(await statuses(2)).toEqual([200, 429]);
    router.advance(60_000);
    expect(await statuses(7)).toEqual([200, 200, 200, 200, 200, 200, 429]);
  });

  test('the allowance is that of the caller, not of the address', async () => {
    router = await openRouter({ limits: { requestsPerMinute: 1 } });
    await router.call('/v1/models');
    expect((await router.call('/v1/models')).status).toBe(429);
    const other = await router.call('/v1/models', { headers: { 'X-API-Key': 'bob' } });
    expect(other.status).toBe(200);
  });
});
