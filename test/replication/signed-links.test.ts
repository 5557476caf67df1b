// Links that work without a key work at every replica: they share the secret of their ledger.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(redisMissing() !== '')(`two replicas on one Redis${redisMissing()}`, () => {
  const ann = { 'X-API-Key': 'ann' };
  let redis: RedisServer;
  let one: Holdover;
  let other: Holdover;
  beforeAll(async () => {
    redis = await startRedis();
    const env = { HOLDOVER_LEDGER: redis.url };
    one = await startHoldover({ upstream: 'embedded', env });
    const { dataDir } = one;
    other = await startHoldover({ upstream: 'embedded', env, dataDir });
  });
  afterAll(async () => {
    await other?.dispose();
    await one?.dispose();
    await redis?.dispose();
  });

  test('an output link and a view link of one server open at the other', async () => {
    const client = v2Client(one.url, ann);
    const { body: job } = await client.submit(flat({ color: 6 }));
    await client.events(job.id);
    const { url } = (await client.job(job.id)).body.outputs[0];
    const { pathname, search } = new URL(url);
    expect((await call(other.url, pathname)).status).toBe(404);
    expect((await call(other.url, pathname + search)).status).toBe(200);

    const history = await vi.waitFor(async () => {
      const told = JSON.parse((await call(one.url, `/history/${job.id}`, { headers: ann })).text);
      expect(told[job.id]?.outputs).toBeDefined();
      return told[job.id];
    });
    const [{ images }]: any[] = Object.values(history.outputs);
    const asked = `/api/view?${new URLSearchParams(images[0])}`;
    const { location = '' } = (await call(one.url, asked, { headers: ann })).headers;
    const link = new URL(location);
    expect((await call(other.url, link.pathname + link.search)).status).toBe(200);
  });
});
