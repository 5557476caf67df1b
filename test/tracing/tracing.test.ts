// Two servers, one in front of the other, send their spans to one collector.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { entryOf, untilRunning } from '../support/clients/client-helpers.ts';
import { growing, flat } from '../support/graphs/workflows.ts';
import {
  type Collector,
  type ReceivedSpan,
  openCollector,
} from '../support/processes/collector.ts';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { startWorker } from '../support/processes/worker.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const KEY = `key-${randomUUID()}`;
const TEXT = `prompt-text-${randomUUID()}`;
const TRACE_ID = 'a'.repeat(31) + '1';
const PARENT_ID = 'b'.repeat(15) + '2';
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`;
const headers = { 'X-API-Key': KEY, traceparent: TRACEPARENT };

/** A prompt with a text of its own. */
const saying = () => ({
  ...flat({ prefix: TEXT }),
  '9': { class_type: 'PreviewAny', inputs: { source: TEXT } },
});

describe('a prompt through two servers', () => {
  let collector: Collector;
  let behind: Holdover;
  let front: Holdover;
  let promptId: string;
  let spans: readonly ReceivedSpan[];
  const named = (service: string, name: string) =>
    spans.find((span) => span.service === service && span.name === name);

  beforeAll(async () => {
    collector = await openCollector();
    const env = (name: string) => ({ ...collector.env, OTEL_SERVICE_NAME: name });
    behind = await startHoldover({ upstream: 'embedded', env: env('behind') });
    const args = ['--upstream', behind.url];
    front = await startHoldover({ upstream: 'embedded', args, env: env('front') });
    const clientId = randomUUID();
    const socket = await connect(front.wsUrl, { clientId, headers: { 'X-API-Key': KEY } });
    const body = { prompt: saying(), client_id: clientId, extra_data: { api_key_comfy_org: KEY } };
    const posted = await postPrompt(front.url, body, { headers });
    promptId = posted.body.prompt_id as string;
    await socket.untilDone(promptId);
    await socket.close();
    await fetch(`${front.url}/api/v2/jobs/none`, { headers });
    await Promise.all([front.terminate(), behind.terminate()]);
    spans = collector.spans();
  });
  afterAll(async () => {
    await Promise.all([front.dispose(), behind.dispose()]);
    await collector.close();
  });

  test('is one trace, that of its caller', () => {
    const names = ['POST /prompt', 'POST /api/v2/jobs', 'prompt', 'GET /api/v2/jobs/{id}/events'];
    expect(names.map((name) => named('front', name)?.traceId)).toEqual(names.map(() => TRACE_ID));
    expect(named('front', 'POST /prompt')?.parentId).toBe(PARENT_ID);
    const served = ['POST /api/v2/jobs', 'GET /api/v2/jobs/:id/events'];
    expect(served.map((name) => named('behind', name)?.traceId)).toEqual([TRACE_ID, TRACE_ID]);
  });

  test('has its calls below the request, then below the prompt, here and at the service', () => {
    const request = named('front', 'POST /prompt');
    const prompt = named('front', 'prompt');
    const submission = named('front', 'POST /api/v2/jobs');
    expect(submission?.parentId).toBe(request?.spanId);
    expect(prompt?.parentId).toBe(request?.spanId);
    expect(named('behind', 'POST /api/v2/jobs')?.parentId).toBe(submission?.spanId);
    const run = named('behind', 'run job');
    expect(run).toMatchObject({
      traceId: TRACE_ID,
      parentId: named('behind', 'POST /api/v2/jobs')?.spanId,
      attributes: { 'holdover.job.outcome': 'succeeded' },
    });
    const events = named('front', 'GET /api/v2/jobs/{id}/events');
    expect([request?.spanId, prompt?.spanId]).toContain(events?.parentId);
    expect(named('behind', 'GET /api/v2/jobs/:id/events')?.parentId).toBe(events?.spanId);
  });

  test('ends with its last frame', () => {
    const prompt = named('front', 'prompt');
    expect(prompt?.attributes).toEqual({
      'holdover.prompt.id': promptId,
      'holdover.prompt.outcome': 'succeeded',
      'holdover.prompt.resumed': false,
    });
    expect(prompt!.endedAt).toBeGreaterThan(named('front', 'POST /prompt')!.endedAt);
  });

  test('a call that is passed on has the span of this server as its parent', () => {
    const passed = spans.filter(({ name }) => name === 'GET /api/v2/*');
    const served = spans.filter(({ name }) => name === 'GET /api/v2/jobs/:id');
    expect(passed[0]?.parentId).toBe(PARENT_ID);
    expect(served.map(({ parentId }) => parentId)).toContain(passed[0]?.spanId);
  });

  test('shows no key, user, text or address', () => {
    const users = (front.log() + behind.log()).match(/(?<="user":")[0-9a-f]{32}/g) ?? [];
    expect(users.length).toBeGreaterThan(0);
    const secrets = [KEY, TEXT, ...new Set(users), front.dataDir, '127.0.0.1'];
    expect(secrets.filter((secret) => collector.raw().includes(secret))).toEqual([]);
    const attributes = new Set(spans.flatMap((span) => Object.keys(span.attributes)));
    const known = ['error.type', 'http.request.method', 'http.response.status_code', 'http.route'];
    const own = [
      'holdover.job.outcome',
      'holdover.prompt.id',
      'holdover.prompt.outcome',
      'holdover.prompt.resumed',
    ];
    expect([...attributes].filter((name) => ![...known, ...own].includes(name))).toEqual([]);
    expect(JSON.stringify(collector.headers())).not.toContain(KEY);
  });
});

test('a prompt continues its trace after kill -9', async () => {
  const collector = await openCollector();
  const options = { upstream: 'embedded', env: collector.env } as const;
  const first = await startHoldover(options);
  const prompt = growing({ steps: 40, side: 64 });
  const posted = await postPrompt(first.url, { prompt }, { headers: { traceparent: TRACEPARENT } });
  const promptId = posted.body.prompt_id as string;
  await untilRunning(first.url);
  await expect.poll(() => collector.spans().map(({ name }) => name)).toContain('POST /prompt');
  const request = collector.spans().find(({ name }) => name === 'POST /prompt');
  await first.kill9();
  const second = await startHoldover({ ...options, dataDir: first.dataDir });
  await entryOf(second.url, promptId);
  await second.terminate();
  const resumed = collector.spans().find(({ name }) => name === 'prompt');
  expect(resumed).toMatchObject({ traceId: TRACE_ID, parentId: request?.spanId });
  expect(resumed?.attributes['holdover.prompt.resumed']).toBe(true);
  await second.dispose();
  await collector.close();
});

describe.skipIf(redisMissing() !== '')(`workers${redisMissing()}`, () => {
  test('add their runs to the trace of the call, also after a worker was killed', async () => {
    const [redis, collector] = await Promise.all([startRedis(), openCollector()]);
    const env = (name: string) => ({ ...collector.env, OTEL_SERVICE_NAME: name });
    const server = await startHoldover({
      upstream: 'embedded',
      args: ['--concurrency', '0', '--ledger', redis.url],
      env: env('server'),
    });
    const { dataDir, url } = server;
    const args = ['--limits', '{"workers":{"lockMs":2000,"checkMs":500}}'];
    const start = (name: string) =>
      startWorker({ ledger: redis.url, dataDir, args, env: env(name) });
    const traced = { headers: { traceparent: TRACEPARENT } };
    const runsOf = (name: string) =>
      collector.spans().filter((span) => span.service === name && span.name === 'run job');
    const first = await start('first');
    await postPrompt(url, { prompt: flat() }, traced);
    await expect.poll(() => runsOf('first').length, { timeout: 10_000 }).toBe(1);
    const posted = await postPrompt(url, { prompt: growing({ steps: 40, side: 64 }) }, traced);
    await untilRunning(url);
    await first.kill9();
    const second = await start('second');
    await expect
      .poll(() => entryOf(url, posted.body.prompt_id as string), { timeout: 20_000 })
      .toMatchObject({ status: { status_str: 'success' } });
    await second.terminate();
    await server.terminate();
    const runs = [...runsOf('first'), ...runsOf('second')];
    const outcome = { 'holdover.job.outcome': 'succeeded' };
    expect(runs.map(({ traceId, attributes }) => [traceId, attributes])).toEqual([
      [TRACE_ID, outcome],
      [TRACE_ID, outcome],
    ]);
    const submissions = collector.spans().filter(({ name }) => name === 'POST /api/v2/jobs');
    expect(runs.map(({ parentId }) => parentId)).toEqual(submissions.map(({ spanId }) => spanId));
    await Promise.all([server.dispose(), redis.dispose(), collector.close()]);
  }, 60_000);
});

test('without OTEL_ variables nothing is loaded or stored, and a caller’s trace goes no further', async () => {
  const received: (string | undefined)[] = [];
  const service = createServer((request, response) => {
    received.push(request.headers['traceparent'] as string | undefined);
    response.statusCode = 404;
    response.end();
  });
  await once(service.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  const server = await startHoldover({ upstream: 'embedded', args: ['--upstream', url] });
  await postPrompt(server.url, { prompt: flat() }, { headers: { traceparent: TRACEPARENT } });
  expect(received.length).toBeGreaterThan(0);
  expect(received.filter((header) => header !== undefined)).toEqual([]);
  await server.dispose();
  service.close();
});

test('serves without traces when it cannot make those it is asked for, and says so', async () => {
  const env = { OTEL_TRACES_EXPORTER: 'zipkin' };
  const server = await startHoldover({ upstream: 'embedded', env });
  expect(server.log()).toContain('"event":"tracing.unavailable"');
  expect(server.log()).toContain('OTEL_TRACES_EXPORTER is \\"zipkin\\"');
  await server.dispose();
});

test('an unreachable collector costs a line of the log', async () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    OTEL_BSP_SCHEDULE_DELAY: '20',
  };
  const server = await startHoldover({ upstream: 'embedded', env });
  await fetch(`${server.url}/queue`);
  await expect.poll(() => server.log()).toContain('"event":"tracing.export_failed"');
  expect(await server.terminate()).toBe(0);
  await server.dispose();
});

/** Modules of these names are not found, as where optional packages are left out. */
const WITHOUT_PACKAGES = `
const Module = require('node:module');
const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...more) => {
  if (!name.startsWith('@opentelemetry/')) return resolve(name, ...more);
  throw Object.assign(new Error('no ' + name), { code: 'MODULE_NOT_FOUND' });
};`;

test('without its packages it serves, and says what to install', async () => {
  const folder = await tempFolder('tracing');
  const hook = join(folder, 'without-packages.cjs');
  await writeFile(hook, WITHOUT_PACKAGES);
  const env = { OTEL_TRACES_EXPORTER: 'otlp', NODE_OPTIONS: `--require=${hook}` };
  const server = await startHoldover({ upstream: 'embedded', env });
  expect(server.log()).toContain('"event":"tracing.unavailable"');
  expect(server.log()).toContain('npm install @opentelemetry/api');
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  await server.dispose();
});
