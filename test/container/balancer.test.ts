// The balancer's shipped configuration, run by the program itself where this machine has it.
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
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const MEBIBYTE = 1024 * 1024;

if (!hasBalancer()) console.log('no haproxy here: deploy/haproxy.cfg is not tried');

describe.skipIf(!hasBalancer())('the balancer', () => {
  let replicas: Holdover[] = [];
  let balancer: Balancer;
  beforeAll(async () => {
    // As in a container: any name may be in the `Host` of a call.
    const env = { HOLDOVER_LOCAL_TOKEN: 'token', HOLDOVER_LISTEN: '0.0.0.0' };
    const start = () => startHoldover({ upstream: 'embedded', env });
    replicas = await Promise.all([start(), start()]);
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
