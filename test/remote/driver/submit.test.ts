import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { LostSubmission, Result, SubmitRequest } from '../../../src/protocol/job-api.ts';
import type { RemoteJobs } from '../../../src/remote/remote-jobs.ts';
import type { Json } from '../../../src/protocol/json.ts';
import type { Graph } from '../../../src/protocol/v2.ts';
import { error, fault, type Hook } from '../../support/upstreams/hostile-v2.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { graph, value } from '../../support/app/jobs.ts';
import { CALLER, FAST, openRemote } from './open.ts';

const WORKFLOW = graph({ 1: ['Number', { value: 1 }] });

function request(more: Partial<SubmitRequest> = {}): SubmitRequest {
  return { workflow: WORKFLOW, extraData: {}, idempotencyKey: randomUUID(), ...more };
}

/** Searches for the job of a submission of this workflow. */
const searched = async (remote: RemoteJobs, more: Partial<LostSubmission> = {}) =>
  value(await remote.search(CALLER, { workflow: WORKFLOW, sentAtMs: Date.now(), ...more }));

const refusalIn = (answer: Result<unknown>) =>
  answer.ok ? [] : [answer.error.status, answer.error.code, answer.error.outcome];

describe('a submission that never left', () => {
  test('is not sent when the name is unknown', async () => {
    const { remote } = await openRemote({ baseUrl: 'http://no-such-host.invalid' });
    expect(await remote.submit(CALLER, request())).toMatchObject({
      error: { outcome: 'not sent' },
    });
  });

  test('is not sent when TLS fails', async () => {
    const { upstream } = await openRemote();
    const { remote } = await openRemote({ baseUrl: upstream.url.replace('http:', 'https:') });
    expect(await remote.submit(CALLER, request())).toMatchObject({
      error: { outcome: 'not sent' },
    });
    expect(upstream.journal).toEqual([]);
  });
});

describe('an ambiguous submission', () => {
  const dying: [string, Hook | undefined][] = [
    ['reset after the body', undefined],
    ['timeout', fault.hang()],
    ...[408, 425, 499, 500, 502, 503, 504, 520, 524, 529].map((status): [string, Hook] => [
      `${status} after accept`,
      fault.refuse(status, 'upstream_error'),
    ]),
    ['close', ({ req }) => void req.socket.destroy()],
    ['502 of a gateway', fault.html(502)],
    ['201 that is no JSON', ({ res }) => void res.writeHead(201).end('created')],
    ['truncated 201', fault.cut(5, { id: 'x', status: 'queued' })],
    ['201 without an id', ({ json }) => json(201, { status: 'queued' })],
  ];

  test.each(dying)('%s: one attempt is made, and its job is found', async (_, last) => {
    const { upstream, remote } = await openRemote();
    upstream.once('submit', fault.claimAndDie({ withJob: true, ...(last && { last }) }));
    expect(await remote.submit(CALLER, request())).toMatchObject({ error: { outcome: 'unknown' } });
    expect(upstream.requests('submit')).toHaveLength(1);
    expect(await searched(remote)).toMatchObject({
      kind: 'found',
      job: { id: [...upstream.jobs.keys()][0] },
    });
  });

  test('409 with Retry-After: a request under the key is in progress', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once('submit', fault.refuse(409, 'idempotency_conflict', { 'Retry-After': '9' }));
    expect(await remote.submit(CALLER, request())).toMatchObject({ error: { outcome: 'unknown' } });
  });

  test('a service whose engine is down says so', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once('submit', fault.refuse(503, 'upstream_unreachable'));
    expect(await remote.submit(CALLER, request())).toMatchObject({
      error: { outcome: 'unknown', engineDown: true },
    });
  });

  test.each([
    [501, false],
    [404, true],
    [405, true],
  ])(
    'a list that is %i: no list; the service may forget keys: %s',
    async (status, mayForgetKeys) => {
      const { upstream, remote } = await openRemote();
      upstream.once('list', fault.refuse(status, 'not_there'));
      expect(await searched(remote)).toEqual({ kind: 'no list', mayForgetKeys });
      expect(remote.capabilities().listing).toBe('no');
      upstream.once('list', fault.refuse(500, 'upstream_error'));
      expect(await searched(remote)).toEqual({ kind: 'no list', mayForgetKeys });
    },
  );

  test("another submission's job of the same graph is not taken for it", async () => {
    const { remote } = await openRemote();
    value(await remote.submit(CALLER, request()));
    expect(await searched(remote)).toEqual({ kind: 'not listed' });
  });

  test('a job of another graph, or an older one, is not taken for it', async () => {
    const { upstream, remote } = await openRemote();
    upstream.addJob({ workflow: WORKFLOW, created_at: '2020-01-01T00:00:00Z' });
    upstream.addJob({ workflow: graph({ 1: ['Number', { value: 2 }] }) });
    expect(await searched(remote)).toEqual({ kind: 'not listed' });
  });

  test('a label finds the job without looking at workflows', async () => {
    const { upstream, remote } = await openRemote();
    const metadata = { holdover_key: 'k1' };
    const job = value(await remote.submit(CALLER, request({ metadata })));
    expect(await searched(remote, { metadata })).toMatchObject({ job: { id: job.id } });
    expect(await searched(remote, { metadata: { holdover_key: 'k2' } })).toEqual({
      kind: 'not listed',
    });
    expect(upstream.requests('workflow')).toEqual([]);
  });

  test('a repeated search reads no workflow twice', async () => {
    const { upstream, remote } = await openRemote();
    const sentAtMs = Date.now();
    upstream.addJob({ workflow: { 9: { class_type: 'Other', inputs: {} } } });
    for (let i = 0; i < 3; i++)
      expect(await searched(remote, { sentAtMs })).toEqual({ kind: 'not listed' });
    expect(upstream.requests('workflow')).toHaveLength(1);
    const { id } = upstream.addJob({ workflow: WORKFLOW });
    expect(await searched(remote, { sentAtMs })).toMatchObject({ job: { id } });
  });

  test('a reused key on the first try is a refusal of this call', async () => {
    const { upstream, remote } = await openRemote();
    upstream.keys.add('used');
    const answer = await remote.submit(CALLER, request({ idempotencyKey: 'used' }));
    expect(refusalIn(answer)).toEqual([422, 'idempotency_key_reuse', undefined]);
    expect(upstream.requests('list')).toEqual([]);
  });
});

describe('an upstream without room', () => {
  test.each(['queue_full', 'deployment_not_ready', 'rate_limited'])(
    '429 %s is a refusal with its Retry-After, and no other attempt is made before',
    async (code) => {
      const clock = createFakeClock();
      const { upstream, remote } = await openRemote({ clock });
      upstream.once('submit', fault.refuse(429, code, { 'Retry-After': '7' }));
      expect(await remote.submit(CALLER, request())).toMatchObject({
        error: { status: 429, code, retryAfterSeconds: 7 },
      });
      expect(refusalIn(await remote.submit(CALLER, request()))[0]).toBe(429);
      expect(upstream.requests('submit')).toHaveLength(1);
      await clock.advance(FAST.maxRetryAfterMs ?? 0);
      value(await remote.submit(CALLER, request()));
    },
  );
});

describe('labels', () => {
  const metadata = { holdover_key: 'k' };
  const sent = (body: Buffer): unknown => JSON.parse(body.toString()).metadata;

  test('are left out where they are not taken, with the same key, and that is remembered', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once('submit', fault.refuse(422, 'metadata_not_supported'));
    value(await remote.submit(CALLER, request({ metadata, idempotencyKey: 'k' })));
    value(await remote.submit(CALLER, request({ metadata })));
    const requests = upstream.requests('submit');
    expect(requests.map(({ body }) => sent(body))).toEqual([metadata, undefined, undefined]);
    expect(requests.slice(0, 2).map(({ headers }) => headers['idempotency-key'])).toEqual([
      'k',
      'k',
    ]);
    expect(remote.capabilities().labels).toBe('none');
  });

  test('are one text where a text is wanted, and are found again in it', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once('submit', ({ json }) => json(400, error('invalid_request', 'metadata: string')));
    value(await remote.submit(CALLER, request({ metadata })));
    expect(remote.capabilities().labels).toBe('string');
    const other = { holdover_key: 'k2' };
    upstream.once('submit', fault.claimAndDie({ withJob: true }));
    expect((await remote.submit(CALLER, request({ metadata: other }))).ok).toBe(false);
    const { job } = await searched(remote, { metadata: other });
    expect(upstream.jobs.get(job?.id ?? '')?.['metadata']).toBe(JSON.stringify(other));
  });
});

describe('a refused workflow that names what may not be taken', () => {
  const refused: Hook = ({ json }) =>
    json(422, error('invalid_workflow', 'Required input is missing: metadata (auth_token)'));

  test.each<[string, Partial<SubmitRequest>]>([
    ['labels', { metadata: { holdover_key: 'k' } }],
    ['a token', { extraData: { auth_token_comfy_org: 'token' } }],
  ])('does not cost later submissions %s', async (_, fields) => {
    const { upstream, remote } = await openRemote();
    value(await remote.submit(CALLER, request(fields)));
    upstream.once('submit', refused, refused);
    expect(await remote.submit(CALLER, request(fields))).toMatchObject({ ok: false });
    value(await remote.submit(CALLER, request(fields)));
    const bodies = upstream.requests('submit').map(({ body }) => JSON.parse(body.toString()));
    const { workflow: _first, ...first } = bodies[0];
    expect(bodies.at(-1)).toMatchObject(first);
  });
});

describe('naming files', () => {
  const info = { id: 'a1', file_path: 'input/a.png' };
  const workflow = graph({ 1: ['Load', { image: { __type: 'core/ASSET', info } }] });
  const named = (body: Buffer) =>
    (JSON.parse(body.toString()) as { workflow: Graph }).workflow['1']?.inputs['image'];

  test('auto tries the path once after a 422 and remembers what worked', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once('submit', fault.refuse(422, 'missing_asset'));
    value(await remote.submit(CALLER, request({ workflow })));
    value(await remote.submit(CALLER, request({ workflow })));
    const names = upstream.requests('submit').map(({ body }) => named(body));
    expect(names).toEqual([{ __type: 'core/ASSET', info }, 'input/a.png', 'input/a.png']);
    expect(remote.capabilities().assetMode).toBe('string');
  });

  test('a workflow that is wrong either way is refused in the first words', async () => {
    const { upstream, remote } = await openRemote();
    upstream.once(
      'submit',
      fault.refuse(422, 'missing_asset'),
      fault.refuse(422, 'invalid_workflow'),
    );
    expect(await remote.submit(CALLER, request({ workflow }))).toMatchObject({
      error: { code: 'missing_asset' },
    });
    expect(remote.capabilities().assetMode).toBe('unknown');
  });

  test.each(['invalid_workflow', 'missing_asset'])(
    'a key used up by the second way is no refusal of the first (%s): the outcome is unknown',
    async (code) => {
      const { upstream, remote } = await openRemote();
      const last = fault.refuse(502, 'upstream_error');
      const die = fault.claimAndDie({ withJob: true, last });
      upstream.once('submit', fault.refuse(422, code), die);
      expect(await remote.submit(CALLER, request({ workflow }))).toMatchObject({
        error: { outcome: 'unknown' },
      });
    },
  );

  test('the words of the first way hide no refusal of another kind', async () => {
    const { upstream, remote } = await openRemote();
    const broke = fault.refuse(402, 'insufficient_credits');
    upstream.once('submit', fault.refuse(422, 'missing_asset'), broke);
    expect(await remote.submit(CALLER, request({ workflow }))).toMatchObject({
      error: { code: 'insufficient_credits' },
    });
  });

  test.each([
    ['object', { __type: 'core/ASSET', info }],
    ['string', 'input/a.png'],
  ] as const)('%s is kept to when it is said', async (assetMode, expected) => {
    const { upstream, remote } = await openRemote({ format: { assetMode } });
    upstream.once('submit', fault.refuse(422, 'missing_asset'));
    expect((await remote.submit(CALLER, request({ workflow }))).ok).toBe(false);
    expect(upstream.requests('submit').map(({ body }) => named(body))).toEqual([expected]);
  });
});

describe('vendor fields', () => {
  const vendor = { order: 3, provenance: { prompt: {}, extraPngInfo: { workflow: {} } } };
  const fieldsOf = (body: Buffer) => Object.keys(JSON.parse(body.toString())).toSorted();

  test('are never sent to a service that is no Holdover', async () => {
    const { upstream, remote } = await openRemote();
    value(await remote.submit(CALLER, request(vendor)));
    expect(fieldsOf(upstream.requests('submit')[0]!.body)).toEqual(['workflow']);
  });

  test('are sent to another Holdover, asked once and without a key', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('health', ({ json }) => json(200, { status: 'healthy', upstream: 'embedded' }));
    value(await remote.submit(CALLER, request(vendor)));
    value(await remote.submit(CALLER, request(vendor)));
    expect(fieldsOf(upstream.requests('submit')[1]!.body)).toEqual([
      'workflow',
      'x_extra_pnginfo',
      'x_order',
      'x_prompt',
    ]);
    expect(upstream.requests('health').map(({ headers }) => headers['authorization'])).toEqual([
      undefined,
    ]);
  });

  test.each([
    ['a lost call', fault.reset()],
    ['a 503', fault.refuse(503, 'starting')],
    ["a proxy's page", fault.html(404)],
  ])('%s to its health does not make a Holdover another service', async (_, hook) => {
    const clock = createFakeClock(Date.now());
    const { upstream, remote } = await openRemote({ clock });
    const isOne = async () => {
      value(await remote.submit(CALLER, request(vendor)));
      return fieldsOf(upstream.requests('submit').at(-1)!.body).length > 1;
    };
    upstream.once('health', hook);
    upstream.always('health', ({ json }) => json(200, { status: 'healthy', upstream: 'embedded' }));
    expect(await isOne()).toBe(false);
    await clock.advance(10_000);
    expect(await isOne()).toBe(true);
    await clock.advance(10 * 60_000);
    upstream.once('health', hook);
    expect(await isOne()).toBe(true);
  });

  test('leave out a prompt that is the workflow itself, and png info that is none', async () => {
    const { upstream, remote } = await openRemote();
    upstream.always('health', ({ json }) => json(200, { status: 'healthy', upstream: 'embedded' }));
    const { workflow } = request();
    const provenance = { prompt: workflow as Json, extraPngInfo: null };
    value(await remote.submit(CALLER, request({ workflow, order: 3, provenance })));
    expect(fieldsOf(upstream.requests('submit')[0]!.body)).toEqual(['workflow', 'x_order']);
  });
});

test('a submission that is answered again does not replace the end of its job', async () => {
  const { upstream, remote } = await openRemote({ limits: { snapshotMs: 60_000 } });
  const sent = request({ extraData: { api_key_comfy_org: 'partner-key' } });
  const job = value(await remote.submit(CALLER, sent));
  upstream.change(job.id, { status: 'canceled' });
  expect(value(await remote.cancel(CALLER, job.id)).status).toBe('canceled');
  upstream.once('submit', ({ json }) => json(201, { ...job } as Json));
  value(await remote.submit(CALLER, sent));
  expect(value(await remote.get(CALLER, job.id)).status).toBe('canceled');
});
