// The balancer's shipped configuration, run by the program itself where this machine has it.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  BALANCER_CONFIG,
  type Balancer,
  complaintsAbout,
  hasBalancer,
  startBalancer,
} from '../support/processes/balancer.ts';
import { call } from '../support/clients/raw-call.ts';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { scrape } from '../support/processes/scrape.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const SOCKETS = 'holdover_websockets';
const POSTS = 'holdover_http_requests_total{method="POST",route="/prompt",outcome="2xx"}';
const MEBIBYTE = 1024 * 1024;

if (!hasBalancer()) console.log('no haproxy here: deploy/haproxy.cfg is not tried');

describe.skipIf(!hasBalancer())('the balancer', () => {
  let replicas: Holdover[] = [];
  let balancer: Balancer;
  beforeAll(async () => {
    // As in a container: any name may be in the `Host` of a call.
    const env = {
      HOLDOVER_LOCAL_TOKEN: 'token',
      HOLDOVER_LISTEN: '0.0.0.0',
      HOLDOVER_SHUTDOWN_DELAY: '6',
    };
    const start = () => startHoldover({ upstream: 'embedded', env });
    replicas = await Promise.all([start(), start(), start()]);
    balancer = await startBalancer(replicas.map(({ port }) => port));
  });
  afterAll(async () => {
    await balancer?.close();
    for (const replica of replicas) await replica.dispose();
  });
  const headers = { Authorization: 'Bearer token' };

  test('takes its configuration as it is shipped', () => {
    expect(complaintsAbout(BALANCER_CONFIG)).toBe('');
  });

  test('keeps the counts from those outside', async () => {
    expect((await call(balancer.url, '/metrics', { headers })).status).toBe(404);
    expect((await call(balancer.url, '/metrics?x=1', { headers })).status).toBe(404);
    expect((await call(balancer.url, '/%6detrics', { headers })).status).toBe(404);
  });

  test('passes the token on, and the refusal back', async () => {
    expect((await call(balancer.url, '/queue')).status).toBe(401);
    expect((await call(balancer.url, '/queue', { headers })).status).toBe(200);
  });

  test('carries uploads and WebSockets', async () => {
    const bytes = Buffer.alloc(20 * MEBIBYTE, 7);
    const placed = await uploadInput(balancer.url, { bytes, name: 'large.bin' }, headers);
    expect(placed.name).toBe('large.bin');
    const socket = await connect(balancer.wsUrl, { headers });
    await socket.until((frame) => frame.kind === 'text' && frame.type === 'status');
    await socket.close();
  });

  test('sends no new call to a replica that is to stop, and leaves it those it has', async () => {
    const { socket } = await connect(balancer.wsUrl, { headers });
    const figures = ({ url }: Holdover) => scrape(url, headers);
    const sockets = await Promise.all(
      replicas.map(async (one) => (await figures(one)).of(SOCKETS)),
    );
    const [stopping] = replicas.splice(sockets.indexOf(1), 1) as [Holdover];
    const stopped = stopping.terminate();
    await expect.poll(async () => (await call(stopping.url, '/healthz')).status).toBe(503);
    // The interval of the checks, and the time of one.
    await delay(2500);
    const before = await figures(stopping);
    for (let color = 0; color < 6; color++)
      await postPrompt(balancer.url, { prompt: flat({ color }) }, { headers });
    expect((await figures(stopping)).of(POSTS)).toBe(before.of(POSTS));
    expect(socket.readyState).toBe(socket.OPEN);
    expect(await stopped).toBe(0);
  });

  test('uses the others when a replica is gone', async () => {
    await replicas[0]?.kill9();
    const answers = [];
    for (let i = 0; i < 6; i++) {
      const prompt = flat({ color: i });
      answers.push((await postPrompt(balancer.url, { prompt }, { headers })).status);
    }
    expect(answers).toEqual([200, 200, 200, 200, 200, 200]);
  });
});
