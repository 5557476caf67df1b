// A Redis Cluster that is opened as ledger, and all that cannot be one.
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { openSharedRedis } from '../../src/ledger/redis/open-shared.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { type RedisServer, redisMissing, startRedisNode } from '../support/processes/redis.ts';
import { type RedisCluster, startRedisCluster } from '../support/processes/redis-cluster.ts';
import { prompt } from './ledger.suite.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const missing = redisMissing();
const hostOf = ({ port }: RedisServer): string => `127.0.0.1:${port}`;

describe.skipIf(missing !== '')(`a Redis Cluster that is opened as ledger${missing}`, () => {
  let cluster: RedisCluster;
  let other: RedisCluster;
  let single: RedisServer;
  beforeAll(async () => {
    [cluster, other, single] = await Promise.all([
      startRedisCluster(),
      startRedisCluster(),
      startRedisNode(),
    ]);
  });
  afterEach(() => cluster.flush());
  afterAll(async () => {
    await Promise.all([cluster?.dispose(), other?.dispose(), single?.dispose()]);
  });

  const open = async (url = cluster.url, log = silentLogger()) => {
    const opened = await openSharedRedis({ url, log, reachWithinMs: 2000 });
    onTestFinished(() => opened.close());
    return opened;
  };
  const nodes = () => cluster.nodes.map(hostOf);
  const refused = (hosts: readonly string[]) => expect(open(`redis://${hosts.join(',')}`)).rejects;

  /** Sends a command to some of the nodes. */
  async function tell(some: readonly RedisServer[], ...words: [string, ...string[]]) {
    const replies: unknown[] = [];
    for (const { url } of some) {
      const redis = new Redis(url);
      replies.push(await redis.call(...words));
      redis.disconnect();
    }
    return replies;
  }

  test('one of its nodes alone is refused', async () => {
    await refused(nodes().slice(0, 1)).toThrow('is a node of a cluster: name several of its nodes');
  });

  test('nodes of two clusters are refused', async () => {
    const [here = '', there = ''] = [nodes()[0], other.nodes.map(hostOf)[0]];
    await refused([here, there]).toThrow(`${there} is not a node of the cluster of ${here}`);
  });

  test('a Redis that is in no cluster is refused beside nodes of the cluster, and when it is named twice', async () => {
    const alone = hostOf(single);
    const reason = `${alone}: ERR This instance has cluster support disabled`;
    await refused([...nodes(), alone]).toThrow(reason);
    await refused([alone, alone]).toThrow(reason);
  });

  test('nodes that do not answer are refused; a single one of several is logged', async () => {
    await refused(['127.0.0.1:1', '127.0.0.1:2']).toThrow('ECONNREFUSED');
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    await open(`redis://127.0.0.1:1,${nodes().join(',')}`, log);
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { event: 'redis.node_unreachable', node: '127.0.0.1:1' },
    ]);
  });

  test('one without a slot is refused', async () => {
    await tell(cluster.nodes, 'CLUSTER', 'DELSLOTS', '0');
    await refused(nodes()).toThrow('no node has some of the slots of the cluster');
    await tell(cluster.nodes.slice(0, 1), 'CLUSTER', 'ADDSLOTS', '0');
    await cluster.whenReady();
    await open();
  });

  test('one is refused while its slots are moved', async () => {
    const [first, second] = cluster.nodes.map((node) => [node]);
    const [id] = await tell(second ?? [], 'CLUSTER', 'MYID');
    await tell(first ?? [], 'CLUSTER', 'SETSLOT', '0', 'MIGRATING', String(id));
    await refused(nodes()).toThrow('while slots of the cluster are moved');
    await tell(first ?? [], 'CLUSTER', 'SETSLOT', '0', 'STABLE');
    await open();
  });

  test('one with the keys of a single Redis is refused', async () => {
    const redis = openRedis(cluster.url, { log: silentLogger() });
    await redis.commands.zadd('holdover:prompts:live', 1, 'a');
    await redis.close();
    await refused(nodes()).toThrow('has the keys of a single Redis');
  });

  test.each([0, 1, 2])('one whose node %i has lost its data is refused, and noticed', async (i) => {
    const { ledger, lost } = await open();
    await ledger.prompts.insert(prompt('k'));
    await tell(cluster.nodes.slice(i, i + 1), 'FLUSHALL');
    expect((await lost).message).toMatch(/redis has/);
    await refused(nodes()).toThrow('a node of the cluster has lost its data');
  });

  test('servers that start together on an empty one have one ledger', async () => {
    const all = await Promise.all(Array.from({ length: 4 }, () => open()));
    expect(new Set(all.map(({ identity }) => identity.id)).size).toBe(1);
  });
});
