// Over a Redis Cluster, entries are received whichever nodes were away.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { SharedEventLog } from '../../src/replication/shared-event-log.ts';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import type { LogHandlers } from '../../src/prompts/prompt-event-log.ts';
import { redisMissing } from '../support/processes/redis.ts';
import {
  type RedisCluster,
  type ScriptWatch,
  startRedisCluster,
  watchScripts,
} from '../support/processes/redis-cluster.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const log = silentLogger();
const USERS = Array.from({ length: 40 }, (_, i) => `user ${i}`);

describe.skipIf(redisMissing() !== '')(`over a Redis Cluster${redisMissing()}`, () => {
  let cluster: RedisCluster;
  let scripts: ScriptWatch;
  let count = 0;
  beforeAll(async () => {
    cluster = await startRedisCluster();
    scripts = await watchScripts(cluster);
  });
  afterAll(async () => {
    scripts?.close();
    await cluster?.dispose();
  });

  /** A process, and the prompts it was told of. */
  async function open() {
    const links = openRedis(cluster.url, { log });
    const promptEventLog = new SharedEventLog({ links, instance: `process ${count++}`, log });
    const told = new Set<string>();
    const handlers: LogHandlers = {
      takeOverVacant: async () => {},
      discover: async (key) => void told.add(key),
      trackUser: async () => {},
      liveKeys: async () => [],
      forgetUser: () => {},
      cancelRequested: (key) => void told.add(`cancel ${key}`),
      endOf: async () => 'removed',
      resultFetched: () => {},
    };
    await promptEventLog.start(handlers, []);
    onTestFinished(async () => {
      await promptEventLog.close();
      await links.close();
    });
    return { links, promptEventLog, told };
  }

  type Process = Awaited<ReturnType<typeof open>>;

  async function begin({ promptEventLog }: Process, user: string): Promise<string> {
    const key = `prompt-${count++}`;
    await promptEventLog.claim({ key, user });
    promptEventLog.subscribe({ key, user }, ignoreAll);
    await promptEventLog.append(key, { kind: 'waits' });
    return key;
  }

  const followAll = ({ promptEventLog }: Process) =>
    Promise.all(USERS.map((user) => promptEventLog.followUser(user)));

  /** The number of the node that has the keys of a user. */
  async function nodeOf({ commands, partitions, cluster: links }: RedisConnections, user: string) {
    const key = `${partitions.users[partitions.indexOf(user)]?.prefix}x`;
    const slot = await commands.call('CLUSTER', 'KEYSLOT', key);
    return Math.floor((Number(slot) * (links?.nodes('master').length ?? 1)) / 16_384);
  }

  test('a process receives the entries of the users it follows, at all nodes', async () => {
    const [leader, follower] = [await open(), await open()];
    await followAll(follower);
    const keys = await Promise.all(USERS.map((user) => begin(leader, user)));
    await Promise.all(USERS.map((user) => follower.promptEventLog.whenCaughtUp(user)));
    expect([...follower.told].toSorted()).toEqual(keys.toSorted());
    await expect.poll(() => leader.promptEventLog.isFollowed(USERS[0] ?? '')).toBe(true);
    await follower.promptEventLog.requestCancel({ key: keys[0] ?? '', user: USERS[0] ?? '' });
    await expect.poll(() => leader.told.has(`cancel ${keys[0]}`)).toBe(true);
  });

  test('a process knows of sockets at other processes, so that they get previews', async () => {
    const [leader, watcher] = [await open(), await open()];
    watcher.promptEventLog.watch('ann', true);
    await expect
      .poll(async () => {
        await begin(leader, 'ann');
        return leader.promptEventLog.isWatched('ann');
      })
      .toBe(true);
  });

  test('after an outage of all nodes everything is received again', async () => {
    const [leader, follower] = [await open(), await open()];
    await followAll(follower);
    await Promise.all(cluster.nodes.map((node) => node.kill9()));
    await Promise.all(cluster.nodes.map((node) => node.restart()));
    await cluster.whenReady();
    const keys = await Promise.all(USERS.map((user) => begin(leader, user)));
    await expect.poll(() => keys.filter((key) => !follower.told.has(key))).toEqual([]);
  });

  test('an outage of one node affects only its own users, until it is back', async () => {
    const [leader, follower] = [await open(), await open()];
    await followAll(follower);
    const places = await Promise.all(USERS.map((user) => nodeOf(leader.links, user)));
    const elsewhere = USERS.filter((_, i) => places[i] !== 1);
    const there = USERS.filter((_, i) => places[i] === 1);
    expect(there.length).toBeGreaterThan(3);
    await cluster.nodes[1]?.kill9();
    const keys = await Promise.all(elsewhere.map((user) => begin(leader, user)));
    await expect.poll(() => keys.filter((key) => !follower.told.has(key))).toEqual([]);
    const waiting = Promise.all(there.map((user) => begin(leader, user)));
    await cluster.nodes[1]?.restart();
    await cluster.whenReady();
    const late = await waiting;
    await expect.poll(() => late.filter((key) => !follower.told.has(key))).toEqual([]);
  });

  test('a command whose caller has given up is not sent later', async () => {
    const links = openRedis(cluster.url, { log, commandTimeoutMs: 1000 });
    onTestFinished(() => links.close());
    await links.commands.set('given-up', 'before');
    await Promise.all(cluster.nodes.map((node) => node.kill9()));
    await expect(links.commands.set('given-up', 'after')).rejects.toThrow('Command timed out');
    await Promise.all(cluster.nodes.map((node) => node.restart()));
    await cluster.whenReady();
    await expect.poll(() => links.commands.get('given-up').catch(String)).toBe('before');
  });

  test('a command after the end of its connection is refused', async () => {
    const links = openRedis(cluster.url, { log });
    onTestFinished(() => links.close());
    const connection = links.connect();
    await connection.blpop('nothing', 0.1);
    connection.disconnect();
    await once(connection, 'end');
    // Nodes close after that, one by one.
    for (const deadline = Date.now() + 200; Date.now() < deadline; await delay(5)) {
      await expect(connection.get('nothing')).rejects.toThrow();
    }
  });

  test('no script has used keys of two slots', () => {
    expect(scripts.elsewhere()).toEqual([]);
    expect(scripts.commands()).toBeGreaterThan(500);
  });
});

const ignoreAll = {
  apply: async () => {},
  onLeadershipLost() {},
  onSubscribed() {},
  onReceivedElsewhere() {},
};
