// Two replicas on one Redis behind the shipped balancer are restarted one after the other while clients work.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startSteadyClient } from '../support/clients/steady-client.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { type Balancer, hasBalancer, startBalancer } from '../support/processes/balancer.ts';
import { freePort } from '../support/processes/free-port.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, startRedis } from '../support/processes/redis.ts';
import { scrape } from '../support/processes/scrape.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

if (!hasBalancer()) console.log('no haproxy here: a rolling restart is not tried');

const CLIENTS = 4;
/** A replica's count of the prompts it accepted. */
const PROMPTS_TAKEN = 'holdover_http_requests_total{method="POST",route="/prompt",outcome="2xx"}';

/** The balancer takes it for healthy again: with the other one stopped there would be none left otherwise. */
async function untilUsed(replica: Holdover): Promise<void> {
  const taken = async () => (await scrape(replica.url)).of(PROMPTS_TAKEN);
  await expect.poll(taken, { timeout: 30_000, interval: 100 }).toBeGreaterThan(0);
}

describe.skipIf(!hasBalancer())('a rolling restart under load', () => {
  let redis: RedisServer;
  let dataDir: string;
  let replicas: Holdover[];
  let balancer: Balancer;
  const start = (port: number): Promise<Holdover> =>
    startHoldover({
      upstream: 'embedded',
      dataDir,
      port,
      env: {
        HOLDOVER_LEDGER: redis.url,
        HOLDOVER_LISTEN: '0.0.0.0',
        HOLDOVER_ALLOW_INSECURE_BIND: '1',
        // As compose.yaml has it.
        HOLDOVER_SHUTDOWN_DELAY: '3',
      },
    });

  beforeAll(async () => {
    redis = await startRedis();
    dataDir = await mkdtemp(join(tmpdir(), 'holdover-rolling-'));
    replicas = await Promise.all([await freePort(), await freePort()].map(start));
    balancer = await startBalancer(replicas.map(({ port }) => port));
  });
  afterAll(async () => {
    await balancer?.close();
    for (const replica of replicas ?? []) await replica.dispose();
    await redis?.dispose();
    await rm(dataDir, { recursive: true, force: true });
  });

  test('loses no prompt, runs none twice, and every client gets every last frame', async () => {
    const clients = Array.from({ length: CLIENTS }, (_, i) =>
      startSteadyClient(balancer, { clientId: `roller${i}` }),
    );
    onTestFinished(() => Promise.all(clients.map((client) => client.stop())).then(() => {}));
    await delay(1000);
    for (const [index, replica] of replicas.entries()) {
      expect(await replica.terminate()).toBe(0);
      const restarted = await start(replica.port);
      replicas[index] = restarted;
      await untilUsed(restarted);
    }
    const posts = () => clients.flatMap((client) => client.posted);
    // On a busy machine the restarts are over before they have sent so many.
    await expect.poll(() => posts().length, { timeout: 60_000 }).toBeGreaterThan(CLIENTS * 10);
    await Promise.all(clients.map((client) => client.stopPosting()));
    const posted = posts();
    expect(posted.filter(({ status }) => status !== 200)).toEqual([]);

    // Before the history is read: a client that connects later gets no frames of results that were fetched.
    const unheard = () =>
      clients.flatMap(({ posted: own, ends }) => own.filter(({ promptId }) => !ends.has(promptId)));
    await expect.poll(unheard, { timeout: 60_000 }).toEqual([]);

    const ids = posted.map(({ promptId }) => promptId).toSorted();
    const historyIds = async () => Object.keys(await getJson(`${balancer.url}/history`)).toSorted();
    await expect.poll(historyIds, { timeout: 20_000 }).toEqual(ids);
    const entries = Object.values<any>(await getJson(`${balancer.url}/history`));
    expect(entries.filter(({ status }) => status.status_str !== 'success')).toEqual([]);
    expect(await getJson(`${balancer.url}/queue`)).toEqual({
      queue_running: [],
      queue_pending: [],
    });
    const heard = clients.flatMap(({ ends }) => [...ends]);
    expect(heard.filter(([, count]) => count !== 1)).toEqual([]);
    expect(clients.map((client) => client.connections()).every((count) => count >= 2)).toBe(true);
    expect(replicas.map((replica) => replica.log()).join('')).not.toMatch(/"level":[56]0/);
  });
});
