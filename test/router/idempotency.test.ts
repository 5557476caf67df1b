import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { createMemoryLedger } from '../support/app/memory-ledger.ts';
import type { ModelDef } from '../../src/router/model-def.ts';
import { fingerprintOf } from '../../src/router/replays.ts';
import { dial, requestText } from '../support/clients/raw-socket.ts';
import { type OpenRouter, errorOf, model, openRouter, said, steppedModel } from './open.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

let router: OpenRouter;
afterEach(() => router.close());

const DAY_MS = 24 * 60 * 60 * 1000;
const KEY = { 'Idempotency-Key': 'k-1' };

/** A model that counts its runs in its answers. */
function counting(more: Partial<ModelDef> = {}) {
  const seen = { runs: 0 };
  const run: ModelDef['run'] = async () => {
    seen.runs++;
    const body = Buffer.from(`{"run": ${seen.runs},  "ü": 1.0}`);
    return { kind: 'answer', contentType: 'application/json', body };
  };
  return { seen, def: model({ model: 'counting', run, ...more }) };
}

/** A model that ends as the list says, then with an answer. */
function ending(...ends: Awaited<ReturnType<ModelDef['run']>>[]) {
  const seen = { runs: 0 };
  const ok = { kind: 'answer', contentType: 'text/plain', body: Buffer.from('ok') } as const;
  return { seen, def: model({ model: 'ending', run: async () => ends[seen.runs++] ?? ok }) };
}

describe('recorded', () => {
  test('the same request again is the original answer byte for byte, marked, under its own request id', async () => {
    const { def, seen } = counting();
    router = await openRouter({ models: [def] });
    const first = await router.run('test/counting', { a: 1 }, KEY);
    const again = await router.run('test/counting', { a: 1 }, KEY);
    expect([again.status, again.text, seen.runs]).toEqual([200, first.text, 1]);
    expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    const ids = [first, again].map(({ headers }) => headers.get('x-service-request-id'));
    expect(new Set(ids).size).toBe(2);
  });

  test('a binary answer is replayed to the byte', async () => {
    const body = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const bytes = model({
      model: 'bytes',
      run: async () => ({ kind: 'answer', contentType: 'audio/wav', body }),
    });
    router = await openRouter({ models: [bytes] });
    const init = { method: 'POST', headers: { 'X-API-Key': 'a', ...KEY }, body: '{}' };
    const url = `${router.url}/v1/models/test/bytes`;
    await (await fetch(url, init)).arrayBuffer();
    const again = await fetch(url, init);
    expect(again.headers.get('content-type')).toBe('audio/wav');
    expect(Buffer.from(await again.arrayBuffer())).toEqual(body);
  });

  test('without a key every call runs', async () => {
    const { def, seen } = counting();
    router = await openRouter({ models: [def] });
    for (let i = 0; i < 3; i++) await router.run('test/counting', {});
    expect(seen.runs).toBe(3);
  });

  test.each([
    ['body', 'test/counting', { a: 2 }],
    ['query', 'test/counting?x=1', { a: 1 }],
    ['model', 'test/other', { a: 1 }],
  ])('the same key with another %s is a 409', async (_, id, body) => {
    const { def, seen } = counting();
    router = await openRouter({ models: [def, model({ model: 'other' })] });
    await router.run('test/counting', { a: 1 }, KEY);
    const answer = await router.run(id, body, KEY);
    expect(errorOf(answer)).toEqual(said(409, 'invalid_input'));
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(seen.runs).toBe(1);
  });

  test('without a keys file the same key of another credential is another key', async () => {
    const { def, seen } = counting();
    router = await openRouter({ models: [def] });
    await router.run('test/counting', {}, KEY);
    const other = await router.run('test/counting', {}, { ...KEY, 'X-API-Key': 'bob' });
    expect([other.json.run, seen.runs]).toEqual([2, 2]);
  });

  test('is replayed to every key of its workspace that covers the model, and to no other', async () => {
    const { def, seen } = counting();
    const keys = [
      { key: 'comfyui-ann', workspace: 'studio' },
      { key: 'comfyui-bob', workspace: 'studio' },
      { key: 'comfyui-cut', workspace: 'studio', models: ['test/other'] },
      { key: 'comfyui-dan', workspace: 'elsewhere' },
    ];
    const dir = await tempFolder('keys');
    const keysFile = join(dir, 'keys.json');
    await writeFile(keysFile, JSON.stringify({ keys }));
    router = await openRouter({ models: [def], keysFile });
    const as = (key: string, body: object = {}) =>
      router.run('test/counting', body, { ...KEY, 'X-API-Key': key });
    const first = await as('comfyui-ann');
    const again = await as('comfyui-bob');
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
    expect(errorOf(await as('comfyui-bob', { other: 1 }))).toEqual(said(409, 'invalid_input'));
    expect(errorOf(await as('comfyui-cut'))).toEqual(said(403, 'forbidden'));
    expect([(await as('comfyui-dan')).json.run, seen.runs]).toEqual([2, 2]);
  });

  test('is kept for 24 hours, which a retry does not extend', async () => {
    const { def, seen } = counting();
    router = await openRouter({ models: [def] });
    await router.run('test/counting', {}, KEY);
    router.advance(DAY_MS - 60_000);
    expect((await router.run('test/counting', {}, KEY)).headers.get('idempotent-replayed')).toBe(
      'true',
    );
    router.advance(2 * 60_000);
    const later = await router.run('test/counting', {}, KEY);
    expect([later.headers.get('idempotent-replayed'), seen.runs]).toEqual([null, 2]);
  });

  test('a 422 that was answered is replayed, with its bucket; another body under its key is a 409', async () => {
    const { def } = counting({ input: { type: 'object', required: ['a'], properties: { a: {} } } });
    router = await openRouter({ models: [def] });
    const first = await router.run('test/counting', {}, KEY);
    const again = await router.run('test/counting', {}, KEY);
    expect([again.status, again.text]).toEqual([422, first.text]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.headers.get('x-service-error-type')).toBe('invalid_input');
    expect((await router.run('test/counting', { a: 1 }, KEY)).status).toBe(409);
  });

  test('a refusal on content-policy grounds is replayed: it would be the same again', async () => {
    const { def, seen } = ending({
      kind: 'failed',
      bucket: 'content_policy_violation',
      detail: 'no',
    });
    router = await openRouter({ models: [def] });
    const first = await router.run('test/ending', {}, KEY);
    const again = await router.run('test/ending', {}, KEY);
    expect(errorOf(again)).toEqual(said(400, 'content_policy_violation'));
    expect([again.text, seen.runs]).toEqual([first.text, 1]);
  });

  test('is charged once, however often it is replayed', async () => {
    const { def } = counting({ priceCents: () => 5 });
    router = await openRouter({ models: [def] });
    for (let i = 0; i < 4; i++) await router.run('test/counting', {}, KEY);
    expect(await router.ledger.modelCalls.chargedCents('user of ann')).toBe(5);
  });

  test('a replay has an audit record of its own', async () => {
    router = await openRouter();
    await router.run('test/echo', {}, KEY);
    const { headers } = await router.run('test/echo', {}, KEY);
    const row = await router.ledger.modelCalls.get(headers.get('x-service-request-id') ?? '');
    expect(row).toMatchObject({ replayed: true, chargedCents: 0, status: 200 });
  });

  test('a replay takes no place among the running calls', async () => {
    const { def, begun, answer } = steppedModel();
    router = await openRouter({ models: [def, model({ model: 'echo' })], limits: { inFlight: 1 } });
    await router.run('test/echo', {}, KEY);
    const running = router.run('test/stepped', {});
    await begun(1);
    expect((await router.run('test/echo', {}, KEY)).status).toBe(200);
    answer();
    await running;
  });
});

describe('reserved', () => {
  test('the same key while the original runs is a 409 with Retry-After; then it is a replay', async () => {
    const { def, begun, answer, runs } = steppedModel();
    router = await openRouter({ models: [def] });
    const original = router.run('test/stepped', {}, KEY);
    await begun(1);
    const early = await router.run('test/stepped', {}, KEY);
    expect(errorOf(early)).toEqual(said(409, 'concurrency_limit_exceeded'));
    expect(early.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    answer({ done: 1 });
    await original;
    const late = await router.run('test/stepped', {}, KEY);
    expect([late.json, late.headers.get('idempotent-replayed')]).toEqual([{ done: 1 }, 'true']);
    expect(runs).toHaveLength(1);
  });

  test('a different body while the original runs is a 409 with Retry-After; then one without', async () => {
    const { def, begun, answer } = steppedModel();
    router = await openRouter({ models: [def] });
    const original = router.run('test/stepped', {}, KEY);
    await begun(1);
    const other = () => router.run('test/stepped', { b: 1 }, KEY);
    const early = await other();
    expect(errorOf(early)).toEqual(said(409, 'concurrency_limit_exceeded'));
    expect(early.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    answer();
    await original;
    const late = await other();
    expect(errorOf(late)).toEqual(said(409, 'invalid_input'));
    expect(late.headers.get('retry-after')).toBeNull();
  });

  test.each([
    ['asked for', { sweepIntervalMs: 60_000 }],
    ['swept', { sweepIntervalMs: 5 }],
  ])(
    'a key is held while its call runs, longer than answers are kept, when %s',
    async (_, more) => {
      const { def, begun, answer, runs } = steppedModel();
      router = await openRouter({ models: [def], limits: { replayMs: 1000, ...more } });
      const original = router.run('test/stepped', {}, KEY);
      await begun(1);
      router.advance(5000);
      await sleep(30);
      const early = await router.run('test/stepped', {}, KEY);
      expect(errorOf(early)).toEqual(said(409, 'concurrency_limit_exceeded'));
      answer({ done: 1 });
      await original;
      const late = await router.run('test/stepped', {}, KEY);
      expect([late.json, late.headers.get('idempotent-replayed')]).toEqual([{ done: 1 }, 'true']);
      expect(runs).toHaveLength(1);
    },
  );
});

describe('over a ledger that several servers have', () => {
  test('the same key at another server while the original runs is a 409; then it is a replay', async () => {
    const ledger = createMemoryLedger();
    const { def, begun, answer, runs } = steppedModel();
    router = await openRouter({ models: [def], ledger, isLedgerShared: true });
    const other = await openRouter({ models: [def], ledger, isLedgerShared: true });
    onTestFinished(() => other.close());
    const original = router.run('test/stepped', {}, KEY);
    await begun(1);
    const early = await other.run('test/stepped', {}, KEY);
    expect(errorOf(early)).toEqual(said(409, 'concurrency_limit_exceeded'));
    answer({ done: 1 });
    expect((await original).json).toEqual({ done: 1 });
    const late = await other.run('test/stepped', {}, KEY);
    expect([late.json, late.headers.get('idempotent-replayed')]).toEqual([{ done: 1 }, 'true']);
    expect(runs).toHaveLength(1);
  });

  test('the key of a call whose server died is free once the call must have ended', async () => {
    const ledger = createMemoryLedger();
    const { def, seen } = counting();
    const limits = { deadlineMs: 60_000 };
    router = await openRouter({ models: [def], ledger, limits, isLedgerShared: true });
    const first = await router.run('test/counting', {}, KEY);
    const requestId = first.headers.get('x-service-request-id') ?? '';
    const held = { scope: 'user of ann', key: 'k-1', requestId };
    await ledger.replays.release(held);
    const fingerprint = fingerprintOf(['POST', 'test/counting', '', '{}']);
    await ledger.replays.reserve({ ...held, fingerprint, atMs: Date.now() }, 0);
    router.advance(60_000);
    const early = await router.run('test/counting', {}, KEY);
    expect(errorOf(early)).toEqual(said(409, 'concurrency_limit_exceeded'));
    router.advance(60_000);
    expect((await router.run('test/counting', {}, KEY)).json.run).toBe(2);
    expect(seen.runs).toBe(2);
  });
});

describe('released', () => {
  test.each([
    ['provider_error', 502],
    ['provider_timeout', 504],
    ['service_unavailable', 503],
  ] as const)('after %s a retry with the same key runs again', async (bucket, status) => {
    const { def, seen } = ending({ kind: 'failed', bucket, detail: 'once' });
    router = await openRouter({ models: [def] });
    expect((await router.run('test/ending', {}, KEY)).status).toBe(status);
    const again = await router.run('test/ending', {}, KEY);
    expect([again.status, again.headers.get('idempotent-replayed'), seen.runs]).toEqual([
      200,
      null,
      2,
    ]);
  });

  test('after the server deadline', async () => {
    const { def, runs } = steppedModel();
    router = await openRouter({ models: [def], limits: { deadlineMs: 20 } });
    expect((await router.run('test/stepped', {}, KEY)).status).toBe(504);
    expect((await router.run('test/stepped', {}, KEY)).status).toBe(504);
    expect(runs).toHaveLength(2);
  });

  test('after a 429 for want of room', async () => {
    const { def, begun, answer } = steppedModel();
    router = await openRouter({ models: [def], limits: { inFlight: 1 } });
    const running = router.run('test/stepped', {});
    await begun(1);
    expect((await router.run('test/stepped', {}, KEY)).status).toBe(429);
    answer();
    await running;
    const retry = router.run('test/stepped', {}, KEY);
    await begun(2);
    answer();
    expect((await retry).status).toBe(200);
  });

  test('a caller who went away before the answer may send the key again: it runs again', async () => {
    const { def, begun, answer } = steppedModel();
    router = await openRouter({ models: [def] });
    const wire = await dial(router.port);
    const headers = ['X-API-Key: ann', 'Idempotency-Key: k-1'];
    wire.send(requestText('/v1/models/test/stepped', { method: 'POST', headers, body: '{}' }));
    await begun(1);
    wire.reset();
    await expect
      .poll(() => router.lines.some((line) => line.errorType === 'client_disconnected'))
      .toBe(true);
    const retry = router.run('test/stepped', {}, KEY);
    await begun(2);
    answer({ again: true });
    expect((await retry).json).toEqual({ again: true });
  });

  test('a caller who went away while his call waited for an earlier one: it never runs', async () => {
    const stepped = steppedModel();
    const { def, seen } = counting({ priceCents: () => 5 });
    router = await openRouter({ models: [stepped.def, def] });
    const wire = await dial(router.port);
    const common = ['X-API-Key: ann', 'Connection: keep-alive'];
    const post = (path: string, headers: string[]) =>
      requestText(path, { method: 'POST', headers: [...common, ...headers], body: '{}' });
    const queued = post('/v1/models/test/counting', ['Idempotency-Key: k-1']);
    wire.send(post('/v1/models/test/stepped', []) + queued);
    await stepped.begun(1);
    wire.reset();
    await expect.poll(() => stepped.runs[0]?.signal.aborted).toBe(true);
    const retry = await router.run('test/counting', {}, KEY);
    expect([retry.headers.get('idempotent-replayed'), seen.runs]).toEqual([null, 1]);
  });

  test('a key reserved by a process that is gone', async () => {
    const ledger = createMemoryLedger();
    const row = {
      scope: 'user of ann',
      key: 'k-1',
      fingerprint: 'x',
      requestId: 'dead',
      atMs: Date.now(),
    };
    await ledger.replays.reserve(row, 0);
    router = await openRouter({ ledger });
    const calls = Array.from({ length: 5 }, () => router.run('test/echo', {}, KEY));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0);
    expect(statuses.every((status) => [200, 409].includes(status))).toBe(true);
    await ledger.close();
  });
});

describe('consumed, not replayable', () => {
  const expectSpent = async () => {
    const retry = await router.run('test/counting', {}, KEY);
    expect(errorOf(retry)).toEqual(said(409, 'invalid_input'));
    expect(retry.headers.get('retry-after')).toBeNull();
    const fresh = await router.run('test/counting', {}, { 'Idempotency-Key': 'fresh' });
    expect(fresh.status).toBe(200);
  };

  test('an answer over the replay cap reaches its caller, and its key is spent', async () => {
    const { def } = counting();
    router = await openRouter({ models: [def], limits: { replayBytes: 5 } });
    expect((await router.run('test/counting', {}, KEY)).json.run).toBe(1);
    await expectSpent();
  });

  test('so is the key of one for which there is no room among all that are kept', async () => {
    const { def } = counting();
    router = await openRouter({ models: [def], limits: { replayBudgetBytes: 5 } });
    await router.run('test/counting', {}, KEY);
    await expectSpent();
  });

  test('an answer of which only a part arrived', async () => {
    const big = Buffer.alloc(16 * 1024 * 1024, 1);
    let runs = 0;
    const { def } = counting({
      run: async () => ({
        kind: 'answer',
        contentType: 'application/octet-stream',
        body: ++runs === 1 ? big : Buffer.from('small'),
      }),
      priceCents: () => 3,
    });
    router = await openRouter({ models: [def], limits: { replayBytes: 2 ** 30 } });
    const wire = await dial(router.port);
    const headers = ['X-API-Key: ann', 'Idempotency-Key: k-1'];
    wire.send(requestText('/v1/models/test/counting', { method: 'POST', headers, body: '{}' }));
    await wire.received(1000);
    wire.reset();
    const charged = () => router.ledger.modelCalls.chargedCents('user of ann');
    await expect.poll(async () => (await router.ledger.replays.recordedBytes()) === 0).toBe(true);
    expect(await charged()).toBe(3);
    await expectSpent();
  });
});

describe('the key itself', () => {
  test.each([
    ['none at all', ''],
    ['more than 255', 'x'.repeat(256)],
  ])('with %s characters it is a 400 invalid_input', async (_, key) => {
    router = await openRouter();
    const answer = await router.run('test/echo', {}, { 'Idempotency-Key': key });
    expect(errorOf(answer)).toEqual(said(400, 'invalid_input'));
  });

  test('means nothing on a read', async () => {
    router = await openRouter();
    const answers = [
      await router.call('/v1/models', { headers: KEY }),
      await router.call('/v1/models/test/echo', { headers: KEY }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  test.each([
    ['401', () => router.run('test/echo', {}, { ...KEY, 'X-API-Key': '' }), 401],
    ['404', () => router.run('test/none', {}, KEY), 404],
    ['400', () => router.run('test/echo', 'no json', KEY), 400],
  ])('is not held by a call that is refused with %s', async (_, refused, status) => {
    router = await openRouter();
    expect((await refused()).status).toBe(status);
    expect((await router.run('test/echo', {}, KEY)).status).toBe(200);
  });
});
