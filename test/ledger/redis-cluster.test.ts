import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis/redis-ledger.ts';
import { openSharedRedis } from '../../src/ledger/redis/open-shared.ts';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { clusterPartitions } from '../../src/redis/redis-partitions.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { redisMissing } from '../support/processes/redis.ts';
import {
  type RedisCluster,
  type ScriptWatch,
  startRedisCluster,
  watchScripts,
} from '../support/processes/redis-cluster.ts';
import { ledgerSuite, prompt } from './ledger.suite.ts';

const log = silentLogger();

function neighbourOf(user: string): string {
  const { indexOf } = clusterPartitions('holdover:');
  for (let i = 0; ; i++) if (indexOf(`user ${i}`) === indexOf(user)) return `user ${i}`;
}

describe.skipIf(redisMissing() !== '')(`over a Redis Cluster${redisMissing()}`, () => {
  let cluster: RedisCluster;
  let links: RedisConnections;
  let scripts: ScriptWatch;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    scripts = await watchScripts(cluster);
    links = openRedis(cluster.url, { log });
  }, 60_000);
  afterAll(async () => {
    scripts?.close();
    await links?.close();
    await cluster?.dispose();
  });
  beforeEach(() => cluster.flush());

  ledgerSuite('redis cluster', () => openRedisLedger({ links }), neighbourOf('ann'));

  test('users are on all nodes', async () => {
    const ledger = openRedisLedger({ links });
    for (let i = 0; i < 60; i++)
      await ledger.prompts.insert(prompt(`k${i}`, { user: `user ${i}` }));
    expect(await ledger.prompts.live()).toHaveLength(60);
    for (const node of cluster.nodes) {
      const there = openRedis(node.url, { log });
      expect(await there.commands.dbsize()).toBeGreaterThan(20);
      await there.close();
    }
    await ledger.close();
  });

  test('a shared ledger opens, and has one identity', async () => {
    const [one, other] = await Promise.all([
      openSharedRedis({ url: cluster.url, log }),
      openSharedRedis({ url: cluster.url, log }),
    ]);
    expect(one.identity.id).toBe(other.identity.id);
    await Promise.all([one.close(), other.close()]);
  });

  test('no script has used keys of two slots', () => {
    expect(scripts.elsewhere()).toEqual([]);
    expect(scripts.commands()).toBeGreaterThan(1000);
  });
});
