import { createPublicAddresses } from '../../src/http/public-address.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LosslessNumber, parseJson } from '../../src/protocol/json.ts';
import { refuse } from '../../src/protocol/job-api.ts';
import {
  ASSET_ID,
  type FakeJobs,
  HASH,
  JOB,
  JOB_ID,
  OUTPUT,
} from '../support/upstreams/fake-jobs.ts';
import { type TestV2App, createTestV2App } from '../support/app/v2-routes.ts';

let app: TestV2App<FakeJobs>;
beforeEach(async () => void (app = await createTestV2App()));
afterEach(() => app.close());

const GRAPH = { '1': { class_type: 'EmptyImage', inputs: { width: 8 } } };

function post(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return app.ask('/api/v2/jobs', { method: 'POST', body: text, headers });
}

function envelope(code: string, details: unknown = null) {
  return { error: { code, message: expect.any(String) as string, details } };
}

describe('POST /jobs', () => {
  test('answers 201 with the job, whatever the content type says', async () => {
    const answer = await post(
      { workflow: GRAPH },
      { 'Content-Type': 'application/x-www-form-urlencoded' },
    );
    expect(answer.status).toBe(201);
    expect(answer.json()).toEqual({ ...JOB, x_workflow: GRAPH });
    expect(app.jobs.submitted).toEqual([
      { caller: { user: 'anna' }, request: { workflow: GRAPH, extraData: {} } },
    ]);
  });

  test('keeps every number to the digit, in and out', async () => {
    const text =
      '{"workflow":{"1":{"class_type":"A","inputs":{"seed":18446744073709551615,"cfg":0.1}}}}';
    const answer = await post(text);
    const seed = app.jobs.submitted[0]?.request.workflow['1']?.inputs['seed'];
    expect(seed).toBeInstanceOf(LosslessNumber);
    expect(answer.body.toString()).toContain('"seed":18446744073709551615,"cfg":0.1');
  });

  test('hands over the key, the labels, the order and the provenance', async () => {
    await post(
      {
        workflow: GRAPH,
        metadata: { shim_key: 'k' },
        extra_data: { api_key_comfy_org: 'a', auth_token_comfy_org: 'b' },
        x_order: -1.5,
        x_prompt: { p: 1 },
        x_extra_pnginfo: { workflow: {} },
      },
      { 'Idempotency-Key': 'once' },
    );
    expect(app.jobs.submitted[0]?.request).toEqual({
      workflow: GRAPH,
      idempotencyKey: 'once',
      metadata: { shim_key: 'k' },
      extraData: { api_key_comfy_org: 'a', auth_token_comfy_org: 'b' },
      order: -1.5,
      provenance: { prompt: { p: 1 }, extraPngInfo: { workflow: {} } },
    });
  });

  test('knows api_key_service_org as the same secret', async () => {
    await post({ workflow: GRAPH, extra_data: { api_key_service_org: 's' } });
    expect(app.jobs.submitted[0]?.request.extraData).toEqual({ api_key_comfy_org: 's' });
  });

  test('takes null for a field that is left out', async () => {
    const nothing = {
      extra_data: null,
      metadata: null,
      webhook_url: null,
      inputs: null,
      x_order: null,
    };
    expect((await post({ workflow: GRAPH, ...nothing })).status).toBe(201);
  });

  const LABELS = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, 'v']));
  test.each([
    ['nothing', '', 'invalid_request'],
    ['half a JSON', '{"workflow":', 'invalid_request'],
    ['no object', '[]', 'invalid_request'],
    ['deep nesting', '['.repeat(5000) + ']'.repeat(5000), 'payload_too_large'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'invalid_request'],
    ['no workflow', '{}', 'invalid_workflow'],
    ['a number as workflow', '{"workflow":18446744073709551615}', 'invalid_workflow'],
    ['webhook_url', { workflow: GRAPH, webhook_url: 'https://x' }, 'invalid_workflow'],
    ['inputs', { workflow: GRAPH, inputs: {} }, 'invalid_workflow'],
    [
      'an unknown extra_data key',
      { workflow: GRAPH, extra_data: { client_id: 'x' } },
      'invalid_request',
    ],
    [
      'an extra_data key that objects have',
      '{"workflow":{},"extra_data":{"__proto__":"x"}}',
      'invalid_request',
    ],
    ['extra_data that is no object', { workflow: GRAPH, extra_data: [] }, 'invalid_request'],
    [
      'a secret that is no string',
      { workflow: GRAPH, extra_data: { api_key_comfy_org: 1 } },
      'invalid_request',
    ],
    ['17 labels', { workflow: GRAPH, metadata: LABELS }, 'metadata_invalid'],
    [
      'a label name with a blank',
      { workflow: GRAPH, metadata: { 'a b': 'v' } },
      'metadata_invalid',
    ],
    ['a label that is no string', { workflow: GRAPH, metadata: { a: 1 } }, 'metadata_invalid'],
    [
      'a label with a control character',
      { workflow: GRAPH, metadata: { a: 'x\u0000' } },
      'metadata_invalid',
    ],
    ['an order that is no number', { workflow: GRAPH, x_order: '1' }, 'invalid_request'],
    ['an endless order', '{"workflow":{},"x_order":1e999}', 'invalid_request'],
  ])('refuses %s', async (_what, body, code) => {
    const isRaw = typeof body === 'string' || Buffer.isBuffer(body);
    const raw = isRaw ? body : JSON.stringify(body);
    const answer = await app.ask('/api/v2/jobs', { method: 'POST', body: raw });
    expect(answer.status).toBe(code === 'payload_too_large' ? 413 : 422);
    expect(answer.json()).toEqual(envelope(code));
    expect(app.jobs.submitted).toEqual([]);
  });

  test.each([0, 256])('refuses an idempotency key of %i characters', async (length) => {
    const key = 'k'.repeat(length);
    const answer = await post({ workflow: GRAPH }, { 'Idempotency-Key': key });
    expect([answer.status, answer.json()]).toEqual([422, envelope('invalid_request')]);
  });

  test('passes a refusal on, with Retry-After and details', async () => {
    app.jobs.answers.submit = refuse(429, 'queue_full', 'full', { retryAfterSeconds: 7 });
    const full = await post({ workflow: GRAPH });
    expect([full.status, full.headers['retry-after'], full.json()]).toEqual([
      429,
      '7',
      envelope('queue_full'),
    ]);
    const details = { node_errors: { '1': { errors: [] } } };
    app.jobs.answers.submit = refuse(422, 'invalid_workflow', 'no', { details });
    expect((await post({ workflow: GRAPH })).json()).toEqual(envelope('invalid_workflow', details));
  });

  test('answers 500 upstream_error and tells nothing when something breaks', async () => {
    app.jobs.answers.submit = new Error('password 1234');
    const answer = await post({ workflow: GRAPH });
    expect([answer.status, answer.json()]).toEqual([500, envelope('upstream_error')]);
    expect(answer.body.toString()).not.toContain('1234');
    expect(app.failures).toHaveLength(1);
  });
});

describe('reading jobs', () => {
  test.each([
    ['GET', `/api/v2/jobs/${JOB_ID}`, JOB],
    ['POST', `/api/v2/jobs/${JOB_ID}/cancel`, { ...JOB, status: 'canceled' }],
    [
      'GET',
      `/api/v2/jobs/${JOB_ID}/workflow`,
      { workflow: { '1': { class_type: 'A', inputs: {} } }, format: 'api' },
    ],
    ['GET', '/api/v2/health', { status: 'healthy', upstream: 'fake' }],
  ])('%s %s answers 200', async (method, path, body) => {
    const answer = await app.ask(path, { method });
    expect([answer.status, answer.json()]).toEqual([200, body]);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  });

  test('GET logs answers 204: none are captured here', async () => {
    const answer = await app.ask(`/api/v2/jobs/${JOB_ID}/logs`);
    expect([answer.status, answer.body.length]).toEqual([204, 0]);
  });

  test.each([
    ['GET', '/api/v2/jobs/x'],
    ['GET', '/api/v2/jobs/%ff'],
    ['GET', '/api/v2/jobs/x/events'],
    ['POST', '/api/v2/jobs/x/cancel'],
    ['GET', '/api/v2/assets/x'],
    ['GET', '/api/v2/assets/x/content'],
    ['DELETE', '/api/v2/assets/x'],
    ['GET', '/api/v2'],
    ['POST', '/api/v2/manager/queue'],
  ])('%s %s answers 404 not_found', async (method, path) => {
    const answer = await app.ask(path, { method });
    expect([answer.status, answer.json()]).toEqual([404, envelope('not_found')]);
  });

  test.each([
    ['PUT', '/api/v2/jobs', 'GET, HEAD, POST'],
    ['GET', `/api/v2/jobs/${JOB_ID}/cancel`, 'POST'],
    ['GET', `/api/v2/assets/by-hash/${HASH}`, 'HEAD'],
    ['POST', '/api/v2/health', 'GET, HEAD'],
  ])('%s %s answers 405 and what is allowed', async (method, path, allow) => {
    const answer = await app.ask(path, { method });
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
    expect(answer.json()).toEqual(envelope('method_not_allowed'));
  });

  test('HEAD answers as GET does, without a body', async () => {
    const answer = await app.ask(`/api/v2/jobs/${JOB_ID}`, { method: 'HEAD' });
    expect([answer.status, answer.body.length]).toEqual([200, 0]);
    expect(answer.headers['content-length']).toBe(String(JSON.stringify(JOB).length));
  });

  test('HEAD on the events opens no stream', async () => {
    const answer = await app.ask(`/api/v2/jobs/${JOB_ID}/events`, { method: 'HEAD' });
    expect([answer.status, answer.headers['content-type']]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
    ]);
  });
});

describe('GET /jobs', () => {
  const list = (query: string) => app.ask(`/api/v2/jobs${query}`);

  test('answers jobs and a cursor; items carry their times by both names', async () => {
    const answer = await list('');
    expect(answer.status).toBe(200);
    const times = { create_time: JOB.created_at, update_time: JOB.created_at };
    expect(answer.json()).toEqual({
      jobs: [{ ...JOB, outputs: [{ ...OUTPUT, url: app.url + OUTPUT.url }], ...times }],
      next_cursor: JOB_ID,
    });
  });

  test.each([
    ['', {}],
    ['?limit=100', { limit: 100 }],
    ['?cursor=abc&unknown=1', { cursor: 'abc' }],
    ['?status=queued,running', { status: ['queued', 'running'] }],
    ['?metadata[a]=1&metadata%5Bb.c%5D=x%20y', { metadata: { a: '1', 'b.c': 'x y' } }],
  ])('understands "%s"', async (query, understood) => {
    await list(query);
    expect(app.jobs.listed).toEqual([understood]);
  });

  test.each([
    ['?limit=0', 'invalid_request'],
    ['?limit=101', 'invalid_request'],
    ['?status=done', 'invalid_request'],
    ['?metadata[a]=1&metadata[a]=2', 'invalid_metadata_filter'],
    ['?metadata[a]=1&metadata[b]=2&metadata[c]=3&metadata[d]=4', 'invalid_metadata_filter'],
    ['?metadata[a%20b]=1', 'invalid_metadata_filter'],
    ['?metadata[a]=%zz', 'invalid_metadata_filter'],
    ['?metadata[a]=%00', 'invalid_metadata_filter'],
  ])('refuses "%s"', async (query, code) => {
    const answer = await list(query);
    expect([answer.status, answer.json()]).toEqual([400, envelope(code)]);
    expect(app.jobs.listed).toEqual([]);
  });
});

describe('who may call', () => {
  test.each([
    ['GET', `/api/v2/jobs/${JOB_ID}`],
    ['GET', `/api/v2/jobs/${JOB_ID}/events`],
    ['POST', '/api/v2/jobs'],
    ['POST', '/api/v2/assets'],
    ['GET', `/api/v2/assets/${ASSET_ID}/content`],
  ])('%s %s without a key answers 401 and asks for a Bearer', async (method, path) => {
    const answer = await app.ask(path, { method, user: '' });
    expect([answer.status, answer.json()]).toEqual([401, envelope('unauthorized')]);
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  test('health needs no key', async () => {
    expect((await app.ask('/api/v2/health', { user: '' })).status).toBe(200);
  });
});

describe('whose path it is', () => {
  test('leaves what is v1\u2019s to v1', async () => {
    expect((await app.ask('/api/v2/userdata?path=x')).body.toString()).toBe('v1');
  });
});

test('the url of a file is a whole one, at the address the caller used; a job’s links need not be', async () => {
  const answer = await app.ask('/api/v2/jobs', { headers: { Host: 'me.example:81' } });
  expect(answer.json()).toMatchObject({
    jobs: [
      {
        urls: { self: `/api/v2/jobs/${JOB_ID}` },
        outputs: [{ url: `http://me.example:81/api/v2/assets/${ASSET_ID}/content` }],
      },
    ],
  });
});

test('all links are absolute where our address is known', async () => {
  const outside = await createTestV2App({
    links: {
      addresses: createPublicAddresses({
        publicUrl: { origin: 'https://h.example', prefix: '/mount' },
      }),
    },
  });
  const answer = await outside.ask('/api/v2/jobs');
  await outside.close();
  const self = `https://h.example/mount/api/v2/jobs/${JOB_ID}`;
  expect(parseJson(answer.body.toString())).toMatchObject({
    jobs: [
      {
        urls: { self, events: `${self}/events`, cancel: `${self}/cancel` },
        outputs: [{ url: `https://h.example/mount/api/v2/assets/${ASSET_ID}/content` }],
      },
    ],
  });
});
