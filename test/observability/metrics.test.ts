import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { interrupt, untilRunning } from '../support/clients/client-helpers.ts';
import { dial, requestText, upgradeText } from '../support/clients/raw-socket.ts';
import { type Scrape, scrape } from '../support/processes/scrape.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, growing } from '../support/graphs/workflows.ts';

const KEY = `key-${randomUUID()}`;
const HEADERS = { 'X-API-Key': KEY };

const server = useHoldover({ upstream: 'embedded', args: ['--preview-method', 'auto'] });

const get = async (path: string, init: RequestInit = {}): Promise<number> => {
  const response = await fetch(server.url + path, { headers: HEADERS, ...init });
  await response.arrayBuffer();
  return response.status;
};

/** Counts are written when an answer is out, which its reader may see first. */
const more = (before: Scrape, series: string) =>
  expect.poll(async () => (await scrape(server.url)).of(series) - before.of(series));

const total = (method: string, route: string, outcome: string) =>
  `holdover_http_requests_total{method="${method}",route="${route}",outcome="${outcome}"}`;

/** Its output is that text, on the socket. */
const saying = (source: string) => ({ '9': { class_type: 'PreviewAny', inputs: { source } } });

async function run(prompt: object, clientId: string = randomUUID()): Promise<string> {
  const socket = await connect(server.wsUrl, { clientId, headers: HEADERS });
  const body = { prompt, client_id: clientId };
  const posted = await postPrompt(server.url, body, { headers: HEADERS });
  await socket.untilDone(posted.body.prompt_id);
  await socket.close();
  return posted.body.prompt_id as string;
}

test('answers in the text format of Prometheus, to GET and HEAD', async () => {
  const response = await fetch(`${server.url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(response.headers.get('cache-control')).toBe('private, no-store');
  const { text } = await scrape(server.url);
  const declared = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
  expect(new Set(declared).size).toBe(declared.length);
  expect(await get('/metrics', { method: 'HEAD' })).toBe(200);
  expect(await get('/metrics', { method: 'POST' })).toBe(405);
});

test('says which Holdover it is, and how the process does', async () => {
  const { of, text } = await scrape(server.url);
  expect(of('holdover_build_info{version="0.1.0",upstream="embedded"}')).toBe(1);
  expect(of('process_resident_memory_bytes')).toBeGreaterThan(1024 * 1024);
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
  expect(text).toMatch(/^nodejs_active_resources_total /m);
});

describe('requests are counted by route pattern and outcome', () => {
  test.each([
    ['GET', '/history/none-such', '/history/:id', '2xx'],
    ['GET', '/api/history/none-such', '/api/history/:id', '2xx'],
    ['GET', '/api/jobs/none-such', '/api/jobs/:id', '4xx'],
    ['GET', '/view?filename=none-such.png', '/view', '4xx'],
    ['GET', '/api/v2/jobs/none-such', '/api/v2/jobs/:id', '4xx'],
    ['GET', '/api/v2/none-such', '/api/v2/*', '4xx'],
    ['GET', '/v1/models', '/v1/models/*', '2xx'],
    ['GET', '/v1/models/none/such', '/v1/models/*', '4xx'],
    ['GET', '/healthz', '/(healthz|readyz)', '2xx'],
    ['GET', '/', '/holdover', '2xx'],
    ['GET', '/metrics', '/metrics', '2xx'],
    ['GET', '/none-such', 'none', '4xx'],
    ['DELETE', '/none-such', 'none', '4xx'],
    ['PROPFIND', '/none-such', 'none', '4xx'],
    ['OPTIONS', '/none-such', 'none', '2xx'],
  ])('%s %s is %s, %s', async (method, path, route, outcome) => {
    const before = await scrape(server.url);
    await get(path, { method });
    const label = method === 'PROPFIND' ? 'other' : method;
    await more(before, total(label, route, outcome)).toBeGreaterThanOrEqual(1);
    const durations = `holdover_http_request_duration_seconds_count{route="${route}"}`;
    await more(before, durations).toBeGreaterThanOrEqual(1);
  });

  test('a refused stranger is counted without the name of a route', async () => {
    const before = await scrape(server.url);
    expect(await get('/queue', { headers: { Origin: 'http://elsewhere.test' } })).toBe(403);
    await more(before, total('GET', 'none', '4xx')).toBe(1);
  });

  test('an answer its reader turned away from is cut off', async () => {
    const before = await scrape(server.url);
    const wire = await dial(server.port);
    const headers = ['Content-Length: 100', 'Expect: 100-continue'];
    wire.send(requestText('/api/v2/jobs', { method: 'POST', headers }));
    await wire.until('100 Continue');
    wire.reset();
    await more(before, total('POST', '/api/v2/jobs', 'cut_off')).toBe(1);
  });

  test('each upgrade is counted, refused ones too', async () => {
    const before = await scrape(server.url);
    await (await connect(server.wsUrl)).close();
    const refused = await dial(server.port);
    refused.send(upgradeText('/ws?clientId=%00'));
    expect((await refused.answer()).status).toBe(400);
    await more(before, total('GET', '/ws', '1xx')).toBe(1);
    await more(before, total('GET', '/ws', '4xx')).toBe(1);
  });
});

describe('jobs', () => {
  test('v2 calls are counted by operation and outcome, and how prompts ended', async () => {
    const before = await scrape(server.url);
    await run(flat({ color: 11 }));
    const call = (operation: string, outcome: string) =>
      `holdover_upstream_calls_total{operation="${operation}",outcome="${outcome}"}`;
    await more(before, call('POST /api/v2/jobs', 'ok')).toBe(1);
    await more(before, call('GET /api/v2/jobs/{id}/events', 'ok')).toBe(1);
    // The last event carries the job: it is not read again.
    await more(before, call('GET /api/v2/jobs/{id}', 'ok')).toBe(0);
    const took = 'holdover_upstream_call_duration_seconds_count{operation="POST /api/v2/jobs"}';
    await more(before, took).toBe(1);
    await more(before, 'holdover_jobs_ended_total{outcome="success"}').toBe(1);
    const { body } = await postPrompt(server.url, { prompt: { '1': { class_type: 'None' } } });
    expect(body.error.type).toBeDefined();
    await more(before, call('POST /api/v2/jobs', '4xx')).toBe(1);
  });

  test('one runs, another is queued, and both are gone when they have ended', async () => {
    const state = (name: string) => async () =>
      (await scrape(server.url)).of(`holdover_jobs{state="${name}"}`);
    const before = await scrape(server.url);
    await postPrompt(server.url, { prompt: endless() });
    await postPrompt(server.url, { prompt: endless({ seed: 8 }) });
    await untilRunning(server.url);
    await expect.poll(state('running')).toBe(1);
    await expect.poll(state('queued')).toBe(1);
    await interrupt(server.url);
    await expect.poll(state('queued')).toBe(0);
    await untilRunning(server.url);
    await interrupt(server.url);
    await expect.poll(state('running')).toBe(0);
    await more(before, 'holdover_jobs_ended_total{outcome="cancelled"}').toBe(2);
  });
});

describe('sockets', () => {
  test('are counted while they are open', async () => {
    const open = async () => (await scrape(server.url)).of('holdover_websockets');
    const before = await open();
    const sockets = await Promise.all([connect(server.wsUrl), connect(server.wsUrl)]);
    expect(await open()).toBe(before + 2);
    for (const socket of sockets) await socket.close();
    await expect.poll(open).toBe(before);
  });

  test('one that does not read has a backlog, and loses previews', async () => {
    const before = await scrape(server.url);
    const clientId = randomUUID();
    const wire = await dial(server.port);
    wire.send(upgradeText(`/ws?clientId=${clientId}`, { headers: HEADERS }));
    await wire.until('"sid"');
    wire.socket.pause();
    const bytes = 'holdover_websocket_backlog_bytes';
    // Until what the machine takes in for a sleeping reader is full.
    for (let i = 0; (await scrape(server.url)).of(bytes) < 600_000 && i < 40; i++) {
      await run(saying(`${i}`.padEnd(600_000, 'x')), clientId);
    }
    expect((await scrape(server.url)).of(bytes)).toBeGreaterThan(500_000);
    await run(growing({ steps: 60, side: 128 }), clientId);
    await more(before, 'holdover_websocket_dropped_frames_total').toBeGreaterThan(0);
    wire.reset();
    await expect.poll(async () => (await scrape(server.url)).of(bytes)).toBe(0);
  });
});

test('shows nothing of anybody: no key, user, prompt, file or path', async () => {
  const mark = `mark-${randomUUID()}`;
  const promptId = await run(flat({ color: 12, prefix: mark }), mark);
  await get(`/history/${promptId}`);
  await get(`/view?filename=${mark}_00001_.png&token=${KEY}`);
  await get(`/${mark}/${mark}`);
  await get(`/userdata/${mark}.json`, { method: 'POST', body: '{}' });
  await get(`/api/v2/${mark}`);
  await get(`/v1/models/${mark}/${mark}`);
  await get(`/holdover/${mark}.js`);
  const { text, labels } = await scrape(server.url, HEADERS);
  const users = server.log().match(/"user":"[0-9a-f]{32}"/g) ?? [];
  expect(users.length).toBeGreaterThan(0);
  const secrets = [mark, promptId, KEY, ...users.map((user) => user.slice(8, -1))];
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
  const odd = labels('route').filter((route) => !/^(none|\/[a-z0-9_:*/(|).{}-]*)$/i.test(route));
  expect(odd).toEqual([]);
});
