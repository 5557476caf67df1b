// `holdover migrate` from one Redis to a cluster, killed and resumed, and on to SQLite.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat, growing } from '../support/graphs/workflows.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedisNode } from '../support/processes/redis.ts';
import { type RedisCluster, startRedisCluster } from '../support/processes/redis-cluster.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

const USERS = ['ann', 'ben', 'cas', 'dan', 'eva'];
const headersOf = (user: string) => ({ 'X-API-Key': `key of ${user}` });

describe.skipIf(redisMissing() !== '')(`from one Redis to a cluster${redisMissing()}`, () => {
  let single: RedisServer;
  let cluster: RedisCluster;
  let server: Holdover;
  let before: readonly any[];
  beforeAll(async () => {
    [single, cluster] = await Promise.all([startRedisNode(), startRedisCluster()]);
    server = await start(single.url);
  });
  afterAll(async () => {
    await server?.dispose();
    await Promise.all([single?.dispose(), cluster?.dispose()]);
  });

  const start = (ledger: string, dataDir?: string): Promise<Holdover> =>
    startHoldover({
      upstream: 'embedded',
      env: { HOLDOVER_LEDGER: ledger },
      ...(dataDir !== undefined && { dataDir }),
    });
  const migrate = (from: string, to: string, crashAt?: string) =>
    runHoldover(
      ['migrate', '--from', from, '--to', to, '--data-dir', server.dataDir],
      crashAt === undefined ? {} : { HOLDOVER_CRASH_AT: crashAt },
    );
  const historyOf = (user: string): Promise<any> =>
    getJson(`${server.url}/history`, headersOf(user));

  test('all is there after a crash and a second attempt, and what waited is run', async () => {
    for (const user of USERS) {
      const headers = headersOf(user);
      await uploadInput(server.url, { bytes: await pngOf(), name: `${user}.png` }, headers);
      await postPrompt(server.url, { prompt: flat(), prompt_id: `${user}1` }, { headers });
      await postPrompt(
        server.url,
        { prompt: flat({ color: 2 }), prompt_id: `${user}2` },
        { headers },
      );
    }
    for (const user of USERS) {
      await expect.poll(async () => Object.keys(await historyOf(user))).toHaveLength(2);
    }
    before = await Promise.all(USERS.map(historyOf));
    const headers = headersOf('ann');
    const prompt = growing({ steps: 60, side: 64 });
    await postPrompt(server.url, { prompt, prompt_id: 'runs' }, { headers });
    await server.kill9();
    expect((await migrate(single.url, cluster.url, 'migrate-row:9')).code).toBeNull();
    const { code, stdout, stderr } = await migrate(single.url, cluster.url);
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    expect(stdout).toMatch(/^Copied and verified \d+ records/);
    server = await start(cluster.url, server.dataDir);
    await expect.poll(async () => Object.keys(await historyOf('ann'))).toContain('runs');
    await expectSame();
  });

  test('and from there to SQLite', async () => {
    await server.terminate();
    const { code, stderr } = await migrate(cluster.url, 'sqlite');
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    server = await start('sqlite', server.dataDir);
    await expectSame();
  });

  async function expectSame(): Promise<void> {
    for (const [i, user] of USERS.entries()) {
      const history = await historyOf(user);
      expect(Object.keys(history).slice(0, 2)).toEqual(Object.keys(before[i]));
      expect(history).toMatchObject(before[i]);
      const url = `${server.url}/view?filename=${user}.png&type=input`;
      expect((await fetch(url, { headers: headersOf(user) })).status).toBe(200);
    }
  }
});
