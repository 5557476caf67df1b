// A server whose prompt another server took over writes nothing more of that prompt.
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { SharedEventLog } from '../../src/replication/shared-event-log.ts';
import type { PromptStore } from '../../src/ledger/ledger.ts';
import { openRedisLedger } from '../../src/ledger/redis/redis-ledger.ts';
import { type RedisConnections, openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { LeadershipLost, type PromptEventLog } from '../../src/prompts/prompt-event-log.ts';
import { prompt } from '../ledger/ledger.suite.ts';
import { startLossy } from '../support/processes/lossy-tcp.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

const KEY = 'k';
const NO_HANDLERS = { takeOverVacant: async () => {} } as never;
const log = silentLogger();

const endOf = (word: string) => ({
  entryJson: `{"said by":"${word}"}`,
  statusWord: word,
  startedAtMs: 1100,
  endedAtMs: 1200,
});
const JOB = { state: 'live', jobId: 'j', targetsJson: '["9"]' } as const;
const INTENT = { state: 'outbox', intentJson: '{"key":"k"}', targetsJson: '["1"]' } as const;

/** The writes of a prompt's leader, and the record each of them leaves. */
const ACTS: readonly [string, (prompts: PromptStore) => Promise<void>, unknown][] = [
  ['finish', (prompts) => prompts.finish(KEY, endOf('error')), like(endOf('error'))],
  ['attach', (prompts) => prompts.update(KEY, 'unfinished', JOB), like(JOB)],
  ['setPlan', (prompts) => prompts.update(KEY, 'unlinked', INTENT), like(INTENT)],
  ['remove', (prompts) => prompts.remove(KEY), undefined],
];

function like(some: object): unknown {
  return expect.objectContaining(some);
}

type Process = { readonly promptEventLog: PromptEventLog; readonly prompts: PromptStore };

describe.skipIf(redisMissing() !== '')(`writes of a prompt's leader${redisMissing()}`, () => {
  let server: RedisServer;
  let links: RedisConnections;
  let one: Process;
  let other: Process;
  beforeAll(async () => {
    server = await startRedis();
    links = openRedis(server.url, { log });
  });
  afterAll(async () => {
    await links?.close();
    await server?.dispose();
  });
  beforeEach(async () => {
    await links.commands.flushall();
    one = open('one');
    other = open('other');
    await one.promptEventLog.claim({ key: KEY, user: 'ann' });
    await one.prompts.insert(prompt(KEY));
  });

  function open(instance: string, over = links): Process {
    const promptEventLog = new SharedEventLog({ links: over, instance, log });
    const { streams: leadership } = promptEventLog;
    const ledger = openRedisLedger({ links: over, leadership: () => leadership });
    onTestFinished(async () => {
      await promptEventLog.close();
      await ledger.close();
    });
    return { promptEventLog, prompts: ledger.prompts };
  }

  /** The first process has said nothing for longer than its lease. */
  async function takenOver(): Promise<void> {
    await links.commands.zadd('holdover:leases', 0, KEY);
    expect(await other.promptEventLog.takeOver({ key: KEY, user: 'ann' })).toBe(true);
  }

  async function ended(): Promise<void> {
    await other.prompts.finish(KEY, endOf('success'));
    await other.promptEventLog.append(KEY, { kind: 'recorded' });
    expect(await links.commands.hexists('holdover:leaders', KEY)).toBe(0);
  }

  const everything = async () => [
    await other.prompts.get(KEY),
    await other.prompts.outlines('ann'),
    await other.prompts.live(),
  ];

  test.each(ACTS)(
    '%s by a process that lost the lead to another changes nothing',
    async (_, act) => {
      await takenOver();
      const before = await everything();
      await expect(act(one.prompts)).rejects.toThrow(LeadershipLost);
      expect(await everything()).toEqual(before);
      expect(one.promptEventLog.isLeader(KEY)).toBe(false);
      await expect(act(one.prompts)).rejects.toThrow(LeadershipLost);
    },
  );

  test.each(ACTS)('%s by a process that leads no prompt is refused', async (_, act) => {
    const before = await everything();
    await expect(act(openAlone())).rejects.toThrow('another process leads this prompt');
    expect(await everything()).toEqual(before);
  });

  test.each(ACTS)(
    '%s that was done is not done again after another process took over',
    async (_, act) => {
      const lossy = await startLossy(server.port);
      onTestFinished(() => lossy.close());
      const away = openRedis(`redis://127.0.0.1:${lossy.port}`, { log });
      onTestFinished(() => away.close());
      const lost = open('lost', away);
      await lost.promptEventLog.claim({ key: KEY, user: 'ann' });
      await lost.promptEventLog.followUser('ann');
      await lost.prompts.get(KEY);
      let before: unknown;
      lossy.loseNextAnswer(async () => {
        await takenOver();
        await other.prompts.finish(KEY, endOf('success'));
        before = await everything();
      });
      await expect(act(lost.prompts)).rejects.toThrow(LeadershipLost);
      expect(lossy.lost()).toBe(1);
      expect(await everything()).toEqual(before);
    },
  );

  test('a prompt is taken over once, however many calls of a process try to', async () => {
    await links.commands.zadd('holdover:leases', 0, KEY);
    const takeOver = () => other.promptEventLog.takeOver({ key: KEY, user: 'ann' });
    const taken = await Promise.all([takeOver(), takeOver()]);
    expect(taken.filter(Boolean)).toEqual([true]);
  });

  test('all keys of a prompt expire soon after its end', async () => {
    const { commands } = links;
    const day = 24 * 60 * 60_000;
    const groups = ['client', 'hosted'] as const;
    const receive = (upTo: number) =>
      groups.forEach((group) => one.promptEventLog.markReceived(KEY, group, upTo));
    const lifetimes = async () => {
      const kept = [`entries:${KEY}`, `received:${KEY}`, `received:${KEY}:hosted`];
      const ttls = kept.map((key) => commands.pttl(`holdover:${key}`));
      return (await Promise.all(ttls)).map((ms) => (ms > 120_000 ? day : ms > 0 ? 120_000 : ms));
    };
    await one.promptEventLog.append(KEY, { kind: 'released' });
    receive(1);
    await expect.poll(lifetimes).toEqual([-1, day, day]);
    await one.promptEventLog.append(KEY, { kind: 'recorded' });
    await expect.poll(lifetimes).toEqual([120_000, 120_000, 120_000]);
    receive(2);
    await expect.poll(() => commands.get(`holdover:received:${KEY}`)).toBe('2');
    expect(await lifetimes()).toEqual([120_000, 120_000, 120_000]);
  });

  test('leases are renewed while the prompts of a user cannot be followed', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const subscriber = { subscribe: () => new Promise(() => {}), onReconnect() {}, close() {} };
    const silent = open('silent', { ...links, subscriber: () => subscriber as never });
    await silent.promptEventLog.start(NO_HANDLERS, []);
    await silent.promptEventLog.claim({ key: 'mine', user: 'ann' });
    for (const _ of [1, 2]) {
      await links.commands.zadd('holdover:leases', 0, 'mine');
      vi.advanceTimersByTime(1500);
      const until = async () => Number(await links.commands.zscore('holdover:leases', 'mine'));
      await expect.poll(until, { timeout: 2000 }).toBeGreaterThan(0);
    }
  });

  test('a prompt whose process stops leading it is taken over when its lease is over', async () => {
    one.promptEventLog.stopLeading(KEY);
    expect(one.promptEventLog.isLeader(KEY)).toBe(false);
    expect(await other.promptEventLog.takeOver({ key: KEY, user: 'ann' })).toBe(false);
    await takenOver();
    expect(other.promptEventLog.isLeader(KEY)).toBe(true);
  });

  test('a prompt cannot be inserted under a claim that another process has taken over', async () => {
    await one.promptEventLog.claim({ key: 'late', user: 'ann' });
    await links.commands.zadd('holdover:leases', 0, 'late');
    expect(await other.promptEventLog.takeOver({ key: 'late', user: 'ann' })).toBe(true);
    await other.promptEventLog.discard('late');
    await expect(one.prompts.insert(prompt('late'))).rejects.toThrow(LeadershipLost);
    expect(await other.prompts.get('late')).toBeUndefined();
    expect((await other.prompts.live()).map(({ key }) => key)).toEqual([KEY]);
    expect(one.promptEventLog.isLeader('late')).toBe(false);
  });

  test('any process may ask for a cancel and delete history', async () => {
    await takenOver();
    await one.prompts.askCancel(KEY, 7);
    expect(await other.prompts.get(KEY)).toMatchObject({ cancelAskedAtMs: 7 });
    await ended();
    await one.prompts.deleteHistory('ann', [`p-${KEY}`]);
    expect(await other.prompts.get(KEY)).toBeUndefined();
  });

  function openAlone(): PromptStore {
    const ledger = openRedisLedger({ links });
    onTestFinished(() => ledger.close());
    return ledger.prompts;
  }
});
