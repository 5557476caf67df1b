// A cluster whose nodes have a replica each: nodes die under load, and their replicas take their places.
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openRedisLedger } from '../../src/ledger/redis/redis-ledger.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { clusterPartitions } from '../../src/redis/redis-partitions.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { prompt } from '../ledger/ledger.suite.ts';
import { redisMissing } from '../support/processes/redis.ts';
import { type RedisCluster, startRedisCluster } from '../support/processes/redis-cluster.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 });

const missing = redisMissing();
/** More than is on its way between two processes. */
const LARGE = 'x'.repeat(200_000);

describe.skipIf(missing !== '')(`the ledger over nodes with a replica${missing}`, () => {
  let cluster: RedisCluster;
  beforeEach(async () => {
    cluster = await startRedisCluster({ withReplicas: true });
  });
  afterEach(async () => await cluster?.dispose());

  function openLedger() {
    const links = openRedis(cluster.url, { log: silentLogger() });
    const ledger = openRedisLedger({ links });
    onTestFinished(async () => {
      await ledger.close();
      await links.close();
    });
    return ledger;
  }

  /** Users whose keys are at the first node. */
  const usersOfFirst = () => {
    const { indexOf, users } = clusterPartitions('holdover:');
    const first = users.slice(0, Math.floor(users.length / 3));
    const names = Array.from({ length: 200 }, (_, i) => `user ${i}`);
    return names.filter((name) => indexOf(name) < first.length);
  };

  test('what a replica lacks is not answered', async () => {
    const ledger = openLedger();
    const [user = ''] = usersOfFirst();
    await ledger.prompts.insert(prompt('before', { user }));
    cluster.replicas[0]?.pause();
    const writing = ledger.prompts.insert(prompt('late', { user }));
    const isLate = await Promise.race([writing.then(() => false), delay(2000, true)]);
    cluster.replicas[0]?.resume();
    await writing;
    expect(isLate).toBe(true);
  });

  test('a replica runs no script, not even one that only reads: its data may be old', async () => {
    const links = openRedis(cluster.url, { log: silentLogger() });
    onTestFinished(() => links.close());
    await links.commands.ping();
    const read = "return redis.call('GET', KEYS[1])";
    // The nodes may still learn of each other, and connections are then opened anew.
    const answers = async () => {
      links.cluster?.refreshSlotsCache();
      const replicas = links.cluster?.nodes('slave') ?? [];
      const { users } = links.partitions;
      const asked = replicas.flatMap((replica) =>
        users.map(({ prefix }) => replica.eval(read, 1, prefix).catch(String)),
      );
      return [replicas.length, ...new Set((await Promise.all(asked)).map(kindOf))];
    };
    await expect.poll(answers, { timeout: 30_000 }).toEqual([3, 'ReplyError: MOVED']);
  });

  test('a node dies while its replica is behind: nothing that was answered is lost', async () => {
    const ledger = openLedger();
    const [user = ''] = usersOfFirst();
    await ledger.prompts.insert(prompt('before', { user }));
    const answered: string[] = [];
    cluster.replicas[0]?.pause();
    const writing = Array.from({ length: 200 }, async (_, i) => {
      await ledger.prompts.insert(prompt(`k${i}`, { user, graphJson: LARGE }));
      answered.push(`k${i}`);
    });
    const written = Promise.allSettled(writing);
    await delay(3000);
    await cluster.nodes[0]?.kill9();
    const answeredBefore = [...answered];
    cluster.replicas[0]?.resume();
    await delay(5000);
    const there = (await ledger.prompts.live()).map(({ key }) => key);
    expect(answeredBefore.filter((key) => !there.includes(key))).toEqual([]);
    await written;
    expect(answered).toHaveLength(writing.length);
  });
});

function kindOf(answer: unknown): unknown {
  return typeof answer === 'string' ? answer.split(' ').slice(0, 2).join(' ') : answer;
}
