// A command that a client waits for times out, and has no effect when Redis executes it later.
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openPromptCounter } from '../../src/app/replication.ts';
import { SharedEventLog } from '../../src/replication/shared-event-log.ts';
import { openRedisLedger } from '../../src/ledger/redis/redis-ledger.ts';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { recordPrompt } from '../../src/prompts/submit/draft.ts';
import type { LogHandlers, PromptOfUser } from '../../src/prompts/prompt-event-log.ts';
import { prompt } from '../ledger/ledger.suite.ts';
import { fakePorts } from '../prompts/fake-ports.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

const KEY = 'k';
const log = silentLogger();
const patienceMs = 300;

describe.skipIf(redisMissing() !== '')(`a Redis that stands still${redisMissing()}`, () => {
  let server: RedisServer;
  let links: RedisConnections;
  beforeEach(async () => {
    server = await startRedis();
    links = openRedis(server.url, { log, commandTimeoutMs: patienceMs });
    return async () => {
      await links.close();
      await server.dispose();
    };
  });

  function open() {
    const promptEventLog = new SharedEventLog({ links, instance: 'one', log });
    const { streams: leadership } = promptEventLog;
    const ledger = openRedisLedger({ links, leadership: () => leadership, timeoutMs: patienceMs });
    onTestFinished(async () => {
      await promptEventLog.close();
      await ledger.close();
    });
    return { promptEventLog, ledger };
  }

  /** As the server does with a prompt the ledger does not know. */
  function sweepers(promptEventLog: ReturnType<typeof open>['promptEventLog']): LogHandlers {
    return {
      async takeOverVacant(keys) {
        for (const key of keys)
          if (await promptEventLog.takeOver({ key, user: 'ann' }))
            await promptEventLog.discard(key);
      },
      discover: async () => {},
      trackUser: async () => {},
      liveKeys: async () => [],
      forgetUser() {},
      cancelRequested() {},
      resultFetched() {},
      endOf: async () => 'removed',
    };
  }

  const leased = () => links.commands.zrange('holdover:leases', 0, '-1');

  test('gives no number, and another one afterwards', async () => {
    const ledger = { prompts: { highestNumber: async () => 6 } } as never;
    const counter = await openPromptCounter(links, ledger);
    expect(await counter.next()).toBe(7);
    server.pause();
    await expect(counter.next()).rejects.toThrow('timed out');
    server.resume();
    await expect.poll(() => Promise.resolve(counter.next()).catch(() => 0)).toBeGreaterThan(7);
  });

  test('gives no lease, and a lease that it gives later expires', async () => {
    const { promptEventLog } = open();
    await promptEventLog.start(sweepers(promptEventLog), []);
    await links.commands.ping();
    server.pause();
    await expect(promptEventLog.claim({ key: KEY, user: 'ann' })).rejects.toThrow('timed out');
    server.resume();
    await expect.poll(() => leased().catch(() => [])).toEqual([KEY]);
    expect(promptEventLog.isLeader(KEY)).toBe(false);
    await expect.poll(leased, { timeout: 15_000 }).toEqual([]);
    expect(await links.commands.hgetall('holdover:leaders')).toEqual({});
  }, 30_000);

  test('does not keep the lease of a prompt that was not recorded', async () => {
    const { promptEventLog, ledger } = open();
    const claim = async (claimed: PromptOfUser): Promise<void> => {
      await promptEventLog.claim(claimed);
      server.pause();
    };
    await ledger.prompts.live();
    const eventLog = { claim, discard: (key: string) => promptEventLog.discard(key) };
    const ports = fakePorts({ records: { prompts: ledger.prompts, eventLog } });
    const entering = recordPrompt(prompt(KEY), ports);
    await expect(entering).rejects.toThrow('the ledger could not be written');
    expect(promptEventLog.isLeader(KEY)).toBe(false);
    server.resume();
    await expect.poll(() => leased().catch(() => [KEY])).toEqual([]);
    await expect.poll(() => ledger.prompts.live().catch(() => [KEY])).toEqual([]);
  });
});
