// Redis has its channels in common for all databases: what is said in one is not for another's ears.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { SharedEventLog } from '../../src/replication/shared-event-log.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

const USER = 'ann';
const log = silentLogger();

describe.skipIf(redisMissing() !== '')(`two databases of one Redis${redisMissing()}`, () => {
  let server: RedisServer;
  beforeAll(async () => void (server = await startRedis()));
  afterAll(() => server?.dispose());

  /** A process that follows the prompts of this database, and the messages it received. */
  async function open(database: number) {
    const links = openRedis(`${server.url}/${database}`, { log });
    const promptEventLog = new SharedEventLog({ links, instance: randomUUID(), log });
    const heard: string[] = [];
    const hears = async (key: string): Promise<void> => void heard.push(`prompt ${key}`);
    const cancelRequested = (key: string): void => void heard.push(`cancel ${key}`);
    const endOf = async () => 'removed' as const;
    await promptEventLog.start(
      {
        takeOverVacant: async () => {},
        discover: hears,
        trackUser: async () => {},
        liveKeys: async () => [],
        forgetUser() {},
        cancelRequested,
        endOf,
        resultFetched() {},
      },
      [],
    );
    await promptEventLog.followUser(USER);
    promptEventLog.watch(USER, true);
    onTestFinished(async () => {
      await promptEventLog.close();
      await links.close();
    });
    return { links, promptEventLog, heard };
  }

  test('exchange no messages', async () => {
    const replicas = [await open(0), await open(1), await open(1)];
    for (const [i, { promptEventLog }] of replicas.entries()) {
      const key = `k${i}`;
      await promptEventLog.claim({ key, user: USER });
      promptEventLog.subscribe({ key, user: USER }, ignoreAll);
      await promptEventLog.append(key, { kind: 'waits' });
      await promptEventLog.requestCancel({ key, user: USER });
    }
    await expect.poll(() => replicas[1]?.heard).toContain('cancel k2');
    for (const { promptEventLog } of replicas) await promptEventLog.whenCaughtUp(USER);
    expect(replicas.map(({ heard }) => heard.toSorted())).toEqual([
      [],
      ['cancel k2', 'prompt k2'],
      ['cancel k1', 'prompt k1'],
    ]);
    const watchers = await replicas[0]?.links.commands.pubsub('NUMSUB', 'holdover:previews:ann');
    expect(watchers).toEqual(['holdover:previews:ann', 1]);
  });
});

const ignoreAll = {
  apply: async () => {},
  onLeadershipLost() {},
  onSubscribed() {},
  onReceivedElsewhere() {},
};
