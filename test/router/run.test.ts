import { afterEach, describe, expect, test } from 'vitest';
import { type Bucket } from '../../src/protocol/router.ts';
import { type Wire, dial, requestText } from '../support/clients/raw-socket.ts';
import { type OpenRouter, errorOf, model, openRouter, said, steppedModel } from './open.ts';

let router: OpenRouter;
afterEach(() => router.close());

const strict = model({
  model: 'strict',
  input: {
    type: 'object',
    additionalProperties: false,
    required: ['prompt'],
    properties: {
      prompt: { type: 'string', pattern: '^[a-z]+$' },
      steps: { type: 'integer', minimum: 1, maximum: 50, default: 20 },
      strength: { type: 'number' },
      style: { type: 'string', enum: ['a', 'b'] },
      tags: { type: 'array', minItems: 1, maxItems: 2, items: { type: 'string' } },
      nested: { type: 'object', required: ['deep'], properties: { deep: { type: 'boolean' } } },
    },
  },
});

const failing = (bucket: Bucket) =>
  model({ model: 'failing', run: async () => ({ kind: 'failed', bucket, detail: 'told so' }) });

describe('POST /v1/models/{provider}/{model}', () => {
  test('answers what the model answers, without an envelope', async () => {
    router = await openRouter();
    const { status, json, headers } = await router.run('test/echo', { a: [1, 'ü'] });
    expect([status, json]).toEqual([200, { echo: { a: [1, 'ü'] } }]);
    expect(headers.get('x-service-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(headers.get('x-service-error-type')).toBeNull();
    expect(headers.get('idempotent-replayed')).toBeNull();
  });

  test('defaults of the schema are filled in', async () => {
    router = await openRouter({ models: [strict] });
    const { json } = await router.run('test/strict', { prompt: 'abc' });
    expect(json.echo).toEqual({ prompt: 'abc', steps: 20 });
  });

  test.each([
    ['no JSON', 'prompt=x'],
    ['nothing', ''],
    ['cut off', '{"a":'],
    ['a list, for a model without a schema', '[]'],
    ['null, for a model without a schema', 'null'],
  ])('a body that is %s is a 400 invalid_input', async (_, body) => {
    router = await openRouter();
    expect(errorOf(await router.run('test/echo', body))).toEqual(said(400, 'invalid_input'));
  });

  test('a body nested without end is a 413 invalid_input', async () => {
    router = await openRouter();
    const body = `${'['.repeat(5000)}${']'.repeat(5000)}`;
    expect(errorOf(await router.run('test/echo', body))).toEqual(said(413, 'invalid_input'));
  });

  test('a body over the limit is a 413 invalid_input', async () => {
    router = await openRouter({ limits: { maxInputBytes: 100 } });
    const answer = await router.run('test/echo', { a: 'x'.repeat(200) });
    expect(errorOf(answer)).toEqual(said(413, 'invalid_input'));
  });
});

describe('422', () => {
  test.each([
    [{}, ['prompt'], 'missing', {}],
    [{ prompt: 7 }, ['prompt'], 'string_type', { input: 7 }],
    [
      { prompt: 'AB' },
      ['prompt'],
      'string_pattern_mismatch',
      { ctx: { pattern: '^[a-z]+$' }, input: 'AB' },
    ],
    [{ prompt: 'ab', steps: 0 }, ['steps'], 'greater_than_equal', { ctx: { ge: 1 }, input: 0 }],
    [{ prompt: 'ab', steps: 55 }, ['steps'], 'less_than_equal', { ctx: { le: 50 }, input: 55 }],
    [{ prompt: 'ab', steps: 5.5 }, ['steps'], 'int_type', { input: 5.5 }],
    [{ prompt: 'ab', strength: 'x' }, ['strength'], 'float_type', { input: 'x' }],
    [
      { prompt: 'ab', style: 'c' },
      ['style'],
      'literal_error',
      { ctx: { expected: '"a" or "b"' }, input: 'c' },
    ],
    [{ prompt: 'ab', tags: [] }, ['tags'], 'too_short', { ctx: { min_length: 1 } }],
    [{ prompt: 'ab', tags: ['x', 'y', 'z'] }, ['tags'], 'too_long', { ctx: { max_length: 2 } }],
    [{ prompt: 'ab', tags: ['x', 2] }, ['tags', 1], 'string_type', { input: 2 }],
    [{ prompt: 'ab', nested: {} }, ['nested', 'deep'], 'missing', {}],
    [{ prompt: 'ab', nested: { deep: 1 } }, ['nested', 'deep'], 'bool_type', { input: 1 }],
    [{ prompt: 'ab', nested: null }, ['nested'], 'dict_type', { input: null }],
    [{ prompt: 'ab', tags: 'x' }, ['tags'], 'list_type', { input: 'x' }],
    [{ prompt: 'ab', what: 1 }, ['what'], 'extra_forbidden', { input: 1 }],
    ['"text"', [], 'dict_type', { input: 'text' }],
  ])('%j says where and why', async (body, path, type, more) => {
    router = await openRouter({ models: [strict] });
    const answer = await router.run('test/strict', body);
    const detail = { loc: ['body', ...path], type, ...more, msg: expect.stringMatching(/./) };
    expect(answer.json).toEqual({ detail: [detail] });
    expect(errorOf(answer)).toEqual({ ...said(422, 'invalid_input'), body: undefined });
  });

  test('has one entry for each offending field', async () => {
    router = await openRouter({ models: [strict] });
    const { json } = await router.run('test/strict', { prompt: 'A', steps: -3, x: 1, y: 2 });
    const places = json.detail.map(({ loc }: { loc: string[] }) => loc.join('.'));
    expect(places.toSorted()).toEqual(['body.prompt', 'body.steps', 'body.x', 'body.y']);
  });

  test('is said before anything runs, and charges nothing', async () => {
    const { def, runs } = steppedModel('priced', {
      input: strict.input ?? {},
      priceCents: () => 5,
    });
    router = await openRouter({ models: [def] });
    const answer = await router.run('test/priced', {});
    expect([answer.status, runs.length]).toEqual([422, 0]);
    const id = answer.headers.get('x-service-request-id') ?? '';
    expect((await router.ledger.modelCalls.get(id))?.chargedCents).toBe(0);
  });

  test('does not echo what is large', async () => {
    router = await openRouter({ models: [strict] });
    const { json } = await router.run('test/strict', { prompt: 'X'.repeat(100_000) });
    expect(json.detail[0]).not.toHaveProperty('input');
  });

  test('a flood of items gets one entry', async () => {
    router = await openRouter({ models: [strict] });
    const tags = Array.from({ length: 100_000 }, () => 1);
    const { status, json } = await router.run('test/strict', { prompt: 'abc', tags });
    const msg = 'Input should have at most 256 items';
    const ctx = { max_length: 256 };
    expect([status, json.detail]).toEqual([
      422,
      [{ loc: ['body', 'tags'], msg, type: 'too_long', ctx }],
    ]);
  });

  test('a flood of unknown fields gets one entry', async () => {
    router = await openRouter({ models: [strict] });
    const flood = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`f${i}`, 0]));
    const { status, json } = await router.run('test/strict', flood);
    expect([status, json.detail.length]).toEqual([422, 1]);
  });

  test.each([
    ['an unknown field', '{"prompt":"ab","x/~y":12345678901234567890}'],
    ['a field of another type', '{"prompt":12345678901234567890}'],
  ])('%s comes back to the digit', async (_, body) => {
    router = await openRouter({ models: [strict] });
    const { text, status } = await router.run('test/strict', body);
    expect([status, text]).toEqual([422, expect.stringContaining(':12345678901234567890}')]);
  });

  test('a model may refuse what fits its schema, with a reason of its own', async () => {
    const detail = [
      { loc: ['body', 'image'], msg: 'too small', type: 'image_too_small', ctx: { min_width: 64 } },
    ];
    const choosy = model({ model: 'choosy', run: async () => ({ kind: 'invalid', detail }) });
    router = await openRouter({ models: [choosy] });
    const answer = await router.run('test/choosy', {});
    expect([answer.status, answer.json]).toEqual([422, { detail }]);
  });
});

describe('buckets', () => {
  test.each([
    ['content_policy_violation', 400],
    ['provider_error', 502],
    ['provider_timeout', 504],
    ['service_unavailable', 503],
  ] as const)('a model that ends with %s is answered %i', async (bucket, status) => {
    router = await openRouter({ models: [failing(bucket)] });
    const answer = await router.run('test/failing', {});
    expect(errorOf(answer)).toEqual(said(status, bucket));
    expect(answer.json.detail).toBe('told so');
    expect(answer.headers.get('retry-after')).toBeNull();
  });

  test('a model that breaks is a 502 provider_error that shows nothing of its insides', async () => {
    const broken = model({
      model: 'broken',
      run: async () => {
        throw new Error('secret path /opt/x');
      },
    });
    router = await openRouter({ models: [broken] });
    const answer = await router.run('test/broken', {});
    expect(errorOf(answer)).toEqual(said(502, 'provider_error'));
    expect(answer.text).not.toContain('secret');
    expect(router.lines.some((line) => line.err?.message === 'secret path /opt/x')).toBe(true);
  });

  test('an unexpected failure is a 500 internal_error', async () => {
    router = await openRouter({
      callerOf: () => {
        throw new Error('unthought');
      },
    });
    const answer = await router.call('/v1/models');
    expect(errorOf(answer)).toEqual(said(500, 'internal_error'));
    expect(answer.text).not.toContain('unthought');
  });

  test('a ledger that does not answer is a 503 service_unavailable', async () => {
    router = await openRouter();
    await router.ledger.close();
    const answer = await router.run('test/echo', {});
    expect(errorOf(answer)).toEqual(said(503, 'service_unavailable'));
  });
});

describe('the server deadline', () => {
  test('when it expires the call is cancelled and answered 504 deadline_exceeded', async () => {
    const { def, runs } = steppedModel();
    router = await openRouter({ models: [def], limits: { deadlineMs: 30 } });
    const answer = await router.run('test/stepped', {});
    expect(errorOf(answer)).toEqual(said(504, 'deadline_exceeded'));
    expect(runs[0]?.signal.aborted).toBe(true);
    // Nothing runs on that a retry could collect.
    expect(answer.headers.get('retry-after')).toBeNull();
  });

  test('an answer committed as it expires is kept', async () => {
    const late = model({
      model: 'late',
      run: ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () =>
            resolve({ kind: 'answer', contentType: 'text/plain', body: Buffer.from('made it') }),
          );
        }),
    });
    router = await openRouter({ models: [late], limits: { deadlineMs: 30 } });
    const answer = await router.run('test/late', {});
    expect([answer.status, answer.text]).toEqual([200, 'made it']);
  });

  test('the place of a call that was cut off is free again', async () => {
    const { def } = steppedModel();
    router = await openRouter({ models: [def], limits: { deadlineMs: 20, inFlight: 1 } });
    await router.run('test/stepped', {});
    expect((await router.run('test/stepped', {})).status).toBe(504);
  });
});

describe('a caller who closes the connection', () => {
  test.each([
    ['breaks it', (wire: Wire) => wire.reset()],
    ['ends it', (wire: Wire) => void wire.socket.end()],
  ])('and %s within the body is in the audit record as such', async (_, leave) => {
    router = await openRouter();
    const wire = await dial(router.port);
    const headers = ['X-API-Key: ann', 'Content-Length: 100'];
    wire.send(requestText('/v1/models/test/echo', { method: 'POST', headers, body: '{"a":' }));
    await new Promise((resolve) => setTimeout(resolve, 50));
    leave(wire);
    const logged = () => router.lines.find((line) => line.errorType === 'client_disconnected');
    await expect.poll(logged).toBeTruthy();
    const row = await router.ledger.modelCalls.get(logged()?.requestId);
    expect(row).toMatchObject({ status: 499, errorType: 'client_disconnected', chargedCents: 0 });
  });

  test('ends the run, and is in the audit record as client_disconnected', async () => {
    const { def, runs, begun } = steppedModel('stepped', { priceCents: () => 7 });
    router = await openRouter({ models: [def] });
    const wire = await dial(router.port);
    const headers = ['X-API-Key: ann', 'Idempotency-Key: k'];
    wire.send(requestText('/v1/models/test/stepped', { method: 'POST', headers, body: '{}' }));
    await begun(1);
    wire.reset();
    await expect.poll(() => runs[0]?.signal.aborted).toBe(true);
    const logged = () => router.lines.find((line) => line.errorType === 'client_disconnected');
    await expect.poll(logged).toBeTruthy();
    const row = await router.ledger.modelCalls.get(logged()?.requestId);
    expect(row).toMatchObject({
      errorType: 'client_disconnected',
      chargedCents: 0,
      user: 'user of ann',
    });
  });
});

describe('the audit record', () => {
  test.each([
    ['a model that is not there', 'test/none', '{}', 404, 'model_not_found'],
    ['an id that can be none', `test/${'X'.repeat(300)}`, '{}', 404, 'model_not_found'],
    ['no JSON', 'test/echo', '{', 400, 'invalid_input'],
    ['no JSON object', 'test/echo', '[]', 400, 'invalid_input'],
    ['too much', 'test/echo', '"xxxxxxxxx"', 413, 'invalid_input'],
  ])('is kept of a call with %s', async (_, id, body, status, errorType) => {
    router = await openRouter({ limits: { maxInputBytes: 10 } });
    const { headers } = await router.run(id, body);
    const requestId = headers.get('x-service-request-id') ?? '';
    expect(await router.ledger.modelCalls.get(requestId)).toMatchObject({
      workspace: 'user of ann',
      model: id.slice(0, 193),
      status,
      errorType,
      chargedCents: 0,
    });
  });

  test('is kept of a call with a key that is none', async () => {
    router = await openRouter();
    const { headers } = await router.run('test/echo', {}, { 'Idempotency-Key': '' });
    const row = await router.ledger.modelCalls.get(headers.get('x-service-request-id') ?? '');
    expect(row).toMatchObject({ model: 'test/echo', status: 400, errorType: 'invalid_input' });
  });

  test('is not kept of a read', async () => {
    router = await openRouter();
    const { headers } = await router.call('/v1/models/test/none');
    const requestId = headers.get('x-service-request-id') ?? '';
    expect(await router.ledger.modelCalls.get(requestId)).toBeUndefined();
  });

  test('carries the request id of the answer, the model, the outcome and the charge', async () => {
    const priced = model({ model: 'priced', priceCents: () => 12 });
    router = await openRouter({ models: [priced] });
    const { headers } = await router.run('test/priced', {});
    const requestId = headers.get('x-service-request-id') ?? '';
    expect(await router.ledger.modelCalls.get(requestId)).toMatchObject({
      requestId,
      model: 'test/priced',
      workspace: 'user of ann',
      status: 200,
      errorType: null,
      chargedCents: 12,
      replayed: false,
    });
    const line = router.lines.find((each) => each.requestId === requestId);
    expect(line).toMatchObject({ status: 200, method: 'POST', path: '/v1/models/test/priced' });
  });

  test.each([
    ['provider_timeout', 'no', 9],
    ['content_policy_violation', 'yes', 9],
    ['content_policy_violation', 'no', 0],
    ['provider_error', 'yes', 0],
  ] as const)(
    '%s by a model that charges refusals: %s, is charged %i',
    async (bucket, charges, cents) => {
      const priced = {
        ...failing(bucket),
        billing: { charges_on_policy_rejection: charges },
        priceCents: () => 9,
      };
      router = await openRouter({ models: [priced] });
      const { headers } = await router.run('test/failing', {});
      const row = await router.ledger.modelCalls.get(headers.get('x-service-request-id') ?? '');
      expect(row?.chargedCents).toBe(cents);
    },
  );

  test('request ids are made by the server, each its own', async () => {
    router = await openRouter();
    const ids = await Promise.all(
      [1, 2, 3].map(async () => {
        const headers = { 'X-Service-Request-Id': 'mine', 'X-Request-Id': 'mine' };
        return (await router.call('/v1/models', { headers })).headers.get('x-service-request-id');
      }),
    );
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain('mine');
  });
});
