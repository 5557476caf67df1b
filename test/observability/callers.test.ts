// The callers that may read /metrics, and its figures in front of a remote service.
import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { openPair, usePair } from '../support/processes/holdover-before-hostile.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { scrape } from '../support/processes/scrape.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const KEY = `key-${randomUUID()}`;
const pair = usePair({ env: { HOLDOVER_UPSTREAM_KEY: KEY } });

test('pages of other origins do not read it, others that reach the port do', async () => {
  const { url } = pair.holdover;
  expect((await scrape(url)).of('holdover_websockets')).toBeGreaterThanOrEqual(0);
  const headers = { Origin: 'http://elsewhere.test' };
  expect((await fetch(`${url}/metrics`, { headers })).status).toBe(403);
});

describe('with --local-token', () => {
  const env = { HOLDOVER_LOCAL_TOKEN: 'open sesame' };
  const server = useHoldover({ upstream: 'embedded', env });

  test.each([
    ['no token', {}, 401],
    ['a wrong token', { Authorization: 'Bearer wrong' }, 401],
    ['the token as a key', { 'X-API-Key': 'open sesame' }, 200],
    ['the token as Bearer, which scrapers can send', { Authorization: 'Bearer open sesame' }, 200],
  ])('%s', async (_, headers, status) => {
    const response = await fetch(`${server.url}/metrics`, { headers: headers as HeadersInit });
    expect(response.status).toBe(status);
    expect((await response.text()).includes('holdover_build_info')).toBe(status === 200);
  });
});

test('a service that wants a key is not asked for one', async () => {
  const own = await openPair();
  onTestFinished(() => own.close());
  const { holdover, upstream } = own;
  upstream.admitted.add('its key');
  expect((await fetch(`${holdover.url}/queue`)).status).toBe(401);
  const { of } = await scrape(holdover.url);
  expect(of('holdover_build_info{version="0.1.0",upstream="remote"}')).toBe(1);
});

test('prompts that find no room deepen the outbox, and leave it when there is some', async () => {
  const { holdover, upstream } = pair;
  const ended = async () =>
    (await scrape(holdover.url)).of('holdover_jobs_ended_total{outcome="success"}');
  const endedBefore = await ended();
  upstream.script(runsToCompletion());
  upstream.always('submit', fault.refuse(429, 'queue_full', { 'Retry-After': '1' }));
  const now = () => scrape(holdover.url);
  for (const color of [1, 2, 3]) await postPrompt(holdover.url, { prompt: flat({ color }) });
  await expect.poll(async () => (await now()).of('holdover_outbox_depth')).toBe(3);
  expect((await now()).of('holdover_jobs{state="waiting"}')).toBe(3);
  const refused = 'holdover_upstream_calls_total{operation="POST /api/v2/jobs",outcome="4xx"}';
  expect((await now()).of(refused)).toBeGreaterThan(0);
  upstream.always('submit', (exchange) => exchange.honestly());
  await expect.poll(ended, { timeout: 15_000 }).toBe(endedBefore + 3);
  expect((await now()).of('holdover_outbox_depth')).toBe(0);
});

test('streams are counted while they are open, and nothing of the upstream is reported', async () => {
  const { holdover, upstream } = pair;
  upstream.script(async () => {});
  const streams = async () => (await scrape(holdover.url)).of('holdover_upstream_streams');
  await expect.poll(streams).toBe(0);
  const socket = await connect(holdover.wsUrl, { clientId: 'watcher' });
  const body = { prompt: flat(), client_id: 'watcher' };
  const { prompt_id: id } = (await postPrompt(holdover.url, body)).body;
  await expect.poll(streams).toBe(1);
  upstream.change(id, { status: 'succeeded', outputs: [] });
  await socket.untilDone(id);
  await socket.close();
  await expect.poll(streams).toBe(0);
  const { text } = await scrape(holdover.url);
  const secrets = [KEY, id, new URL(upstream.url).host];
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
});
