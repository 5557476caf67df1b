// Over one Redis, entries go to the processes that follow their user, and to no other.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SharedEventLog } from '../../src/replication/shared-event-log.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import type { LogHandlers, PromptOfUser, UserLogs } from '../../src/prompts/prompt-event-log.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

const log = silentLogger();

describe.skipIf(redisMissing() !== '')(`who receives entries${redisMissing()}`, () => {
  let server: RedisServer;
  let instances = 0;
  beforeAll(async () => void (server = await startRedis()));
  afterAll(() => server?.dispose());

  /**
   * A process, and what it was told. It can read prompts as long as `ledger` can be read; `read`: those it read before it
   * started.
   */
  async function open({
    ledger = { isReadable: true },
    read = [],
  }: { ledger?: { isReadable: boolean }; read?: readonly PromptOfUser[] } = {}) {
    const links = openRedis(server.url, { log });
    const promptEventLog = new SharedEventLog({ links, instance: `process ${instances++}`, log });
    const told: string[] = [];
    const logs = new Map<string, UserLogs>();
    const vacant = new Set<string>();
    const handlers: LogHandlers = {
      takeOverVacant: async (keys) => keys.forEach((key) => vacant.add(key)),
      async discover(key) {
        if (!ledger.isReadable) throw new Error('Command timed out');
        told.push(`prompt ${key}`);
      },
      trackUser: async (user, userLogs) => void logs.set(user, userLogs),
      liveKeys: async () => [],
      forgetUser: (user) => void told.push(`forget ${user}`),
      cancelRequested: (key) => void told.push(`cancel ${key}`),
      endOf: async () => 'removed',
      resultFetched: (user, id) => void told.push(`fetched ${user} ${id}`),
    };
    await promptEventLog.start(handlers, read);
    onTestFinished(async () => {
      await promptEventLog.close();
      await links.close();
    });
    return { links, promptEventLog, told, logs, vacant };
  }

  type Process = Awaited<ReturnType<typeof open>>;

  async function begin({ promptEventLog }: Process, key: string, user: string): Promise<void> {
    await promptEventLog.claim({ key, user });
    promptEventLog.subscribe({ key, user }, ignoreAll);
    await promptEventLog.append(key, { kind: 'waits' });
  }

  test('a prompt that began and ended while a process could not read it is found afterwards', async () => {
    const ledger = { isReadable: false };
    const [leader, follower] = [await open(), await open({ ledger })];
    await follower.promptEventLog.followUser('eve');
    await begin(leader, 'short', 'eve');
    await leader.promptEventLog.append('short', { kind: 'recorded' });
    await follower.promptEventLog.whenCaughtUp('eve');
    expect(follower.told).toEqual([]);
    // The connection breaks: what was missed is read.
    ledger.isReadable = true;
    await leader.links.commands.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await expect.poll(() => follower.told).toEqual(['prompt short']);
  });

  test('a leader follows the users of its prompts', async () => {
    const leader = await open();
    await begin(leader, 'led', 'cas');
    await expect.poll(() => leader.promptEventLog.isFollowed('cas')).toBe(true);
    const other = await open();
    await other.promptEventLog.requestCancel({ key: 'led', user: 'cas' });
    await expect.poll(() => leader.told).toEqual(['cancel led']);
  });

  test('a process that follows a user late finds the prompts that have entries, and those that ended', async () => {
    const leader = await open();
    await begin(leader, 'ended', 'dan');
    await leader.promptEventLog.append('ended', { kind: 'recorded' });
    await begin(leader, 'live', 'dan');
    await leader.promptEventLog.claim({ key: 'unanswered', user: 'dan' });
    leader.promptEventLog.resultFetched('dan', 'id of ended');
    const late = await open();
    await late.promptEventLog.followUser('dan');
    const logs = late.logs.get('dan');
    expect(logs?.endedKeys).toEqual(['ended']);
    expect(await logs?.withEntries(['ended', 'live', 'unanswered'])).toEqual(['ended', 'live']);
    expect(late.told).toEqual(['fetched dan id of ended']);
  });

  test('a prompt that ended after its record was read gets no leader', async () => {
    const leader = await open();
    await begin(leader, 'ended-since', 'fay');
    await begin(leader, 'live-still', 'fay');
    await leader.promptEventLog.append('ended-since', { kind: 'recorded' });
    const { commands } = leader.links;
    await commands.zrem('holdover:leases', 'live-still');
    const read = ['ended-since', 'live-still'].map((key) => ({ key, user: 'fay' }));
    const { vacant } = await open({ read });
    expect(read.map(({ key }) => vacant.has(key))).toEqual([false, true]);
  });
});

const ignoreAll = {
  apply: async () => {},
  onLeadershipLost() {},
  onSubscribed() {},
  onReceivedElsewhere() {},
};
