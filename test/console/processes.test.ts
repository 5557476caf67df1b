// Servers and workers that share a Redis, as their operator sees them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

const missing = redisMissing();
const notRun = missing === '' ? '' : ` (NOT RUN: ${missing})`;
if (notRun) console.warn(`counts of servers are not tested${notRun}`);

describe.skipIf(notRun)(`several servers${notRun}`, () => {
  let redis: RedisServer;
  let dataDir: string;
  let servers: readonly Holdover[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    dataDir = await runFolder('counts');
    const env = { HOLDOVER_LEDGER: redis.url };
    const start = (concurrency: string): Promise<Holdover> =>
      startHoldover({
        upstream: 'embedded',
        dataDir,
        env,
        args: ['--concurrency', concurrency],
      });
    servers = [await start('1'), await start('0')];
  });
  afterAll(async () => {
    await Promise.all(servers.map((one) => one.dispose()));
    await redis?.dispose();
  });

  test('say how many there are, and how many run jobs', async () => {
    const ask = async (path: string) =>
      (await (await fetch(`${servers[1]?.url}/holdover/api/${path}`)).json()) as {
        readonly servers: number;
        readonly workers: number;
        readonly warnings: readonly { readonly code: string }[];
      };
    // Each count is remembered for five seconds, from its own first time on.
    const both = { servers: 2, workers: 1, warnings: [] };
    await expect.poll(() => ask('server'), { timeout: 8000 }).toMatchObject(both);
    expect(await ask('traffic')).toMatchObject({ servers: 2 });
    await servers[0]?.terminate();
    await expect
      .poll(async () => (await ask('server')).warnings.map(({ code }) => code), { timeout: 8000 })
      .toEqual(['no_worker']);
    await expect.poll(() => ask('traffic'), { timeout: 8000 }).toMatchObject({ servers: 1 });
  });
});
