// One prompt's log as one process sees it: entries in order, gaps read from the store, one owner.
import { expect, test } from 'vitest';
import {
  type LogSubscriber,
  type PromptLogEntry,
  LeadershipLost,
} from '../../src/prompts/prompt-event-log.ts';
import { encodeEntry, LogStream } from '../../src/replication/log-stream.ts';
import { LogStreams, keysAndTokens } from '../../src/replication/log-streams.ts';

const ATTACHED: PromptLogEntry = { kind: 'attached' };
const RELEASED: PromptLogEntry = { kind: 'released' };
const RECORDED: PromptLogEntry = { kind: 'recorded' };

/** A log, and what its subscriber was told; `stored` is what other processes have written. */
function open(stored: PromptLogEntry[] = []) {
  const events: string[] = [];
  let isOwner = true;
  const stream = new LogStream(
    { key: 'k', user: 'ann' },
    {
      async write(_prompt, _token, { text }) {
        if (!isOwner) return false;
        stored.push(JSON.parse(text) as PromptLogEntry);
        return true;
      },
      after: async (_key, n) =>
        stored.slice(n).map((entry, i) => ({ n: n + i + 1, text: encodeEntry(entry).text })),
      receivedUpTo: async () => ({ client: 2, hosted: 0 }),
    },
  );
  const subscriber: LogSubscriber = {
    apply: async ({ kind }, position) => void events.push(`${position} ${kind}`),
    onLeadershipLost: () => void events.push('lost'),
    onSubscribed: ({ client }, since) => void events.push(`client has ${client}, since ${since}`),
    onReceivedElsewhere: (group, upTo) => void events.push(`${group} received ${upTo}`),
  };
  const receive = (n: number, entry: PromptLogEntry) => stream.receive(n, encodeEntry(entry).text);
  return { stream, stored, events, subscriber, receive, loseAtRedis: () => (isOwner = false) };
}

test('a late subscriber gets all entries, after what sockets have received', async () => {
  const { stream, events, subscriber } = open([ATTACHED, RELEASED]);
  await stream.subscribe(subscriber, 'later');
  expect(events).toEqual(['client has 2, since later', '1 attached', '2 released']);
});

test('entries are applied once and in order; a gap is read from the store', async () => {
  const { stream, stored, events, subscriber, receive } = open();
  await stream.subscribe(subscriber, 'its start');
  events.length = 0;
  await receive(1, ATTACHED);
  await receive(1, ATTACHED);
  stored.push(ATTACHED, RELEASED, RECORDED);
  await receive(3, RECORDED);
  expect(events).toEqual(['1 attached', '2 released', '3 recorded']);
  expect(stream.hasEnded()).toBe(true);
});

test('an end counts as applied when a subscriber got it', async () => {
  const { stream, subscriber } = open([ATTACHED, RECORDED]);
  await stream.catchUp();
  expect([stream.hasEnded(), stream.hasAppliedEnd()]).toEqual([true, false]);
  await stream.subscribe(subscriber, 'later');
  expect(stream.hasAppliedEnd()).toBe(true);
});

test('a refused write ends the leadership, and entries of the new leader are read', async () => {
  const { stream, stored, events, subscriber, loseAtRedis } = open();
  stream.startNew('token');
  await stream.subscribe(subscriber, 'its start');
  loseAtRedis();
  stored.push({ kind: 'taken' });
  await expect(stream.append(ATTACHED)).rejects.toThrow(LeadershipLost);
  await stream.whenIdle();
  expect(events).toEqual(['lost', '1 taken']);
});

test('a subscriber that comes after the takeover gets all entries, and the next ones', async () => {
  const { stream, events, subscriber } = open([ATTACHED, RELEASED]);
  await stream.takeLead('token');
  expect(stream.isUnknown()).toBe(true);
  await stream.subscribe(subscriber, 'later');
  expect(stream.isUnknown()).toBe(false);
  await stream.append(RECORDED);
  expect(events).toEqual(['client has 2, since later', '1 attached', '2 released', '3 recorded']);
});

test('received positions of other processes are read when messages about them were missed', async () => {
  const { stream, events, subscriber } = open();
  await stream.subscribe(subscriber, 'its start');
  events.length = 0;
  await stream.readReceivedPositions();
  expect(events).toEqual(['client received 2', 'hosted received 0']);
});

test('the end of a prompt whose entries are gone is applied once', async () => {
  const { stream, events, subscriber } = open();
  await stream.subscribe(subscriber, 'its start');
  events.length = 0;
  await stream.finish('removed');
  await stream.finish('removed');
  expect(events).toEqual(['1 removed']);
});

test('logs of ended prompts are kept for two minutes', async () => {
  const streams = new LogStreams({
    write: async () => true,
    after: async () => [],
    receivedUpTo: async () => ({ client: 0, hosted: 0 }),
  });
  streams.open({ key: 'live', user: 'ann' }).startNew('token');
  await streams.open({ key: 'ended', user: 'ann' }).finish('removed');
  streams.removeEnded(0);
  streams.removeEnded(119_000);
  expect(streams.get('ended')).toBeDefined();
  streams.removeEnded(121_000);
  expect(streams.get('ended')).toBeUndefined();
  expect(keysAndTokens(streams.led())).toEqual(['live', 'token']);
});
