// The events of a job that another process runs: published ones in order, missed ones from its stream.
import { expect, onTestFinished, test, vi } from 'vitest';
import { silentLogger } from '../../../src/observability/log.ts';
import type { JobEvent } from '../../../src/protocol/job-api.ts';
import { EventMirrors } from '../../../src/engine/bullmq/event-mirrors.ts';
import { stringifyJson } from '../../../src/protocol/json.ts';
import { QueueKeys } from '../../../src/engine/bullmq/redis-keys.ts';

const ANNA = { user: 'anna' };
const KEYS = new QueueKeys({ prefix: 'p:', channels: 'p:' });

const running: JobEvent = { event: 'status', data: { status: 'running', queue_position: null } };
const ended: JobEvent = { event: 'status', data: { status: 'succeeded', queue_position: null } };
const step = (n: number): JobEvent => ({
  event: 'x_text',
  data: { node_id: '1', text: String(n) },
});

type OnMessage = (message: Buffer, channel: string) => void;

/** A Redis with one stream, and a publisher that may lose messages. */
function open(
  positions: readonly (number | null)[] = [null],
  { run, readsPlaces }: { run?: object; readsPlaces?: () => Promise<void> } = {},
) {
  const stream: [id: string, fields: string[]][] = [];
  const handlers = new Map<string, Set<OnMessage>>();
  let reconnected = (): void => {};
  let hasExpired = false;
  const send = (channel: string, text: string): void =>
    handlers.get(channel)?.forEach((onMessage) => onMessage(Buffer.from(text), channel));
  const mirrors = new EventMirrors({
    redis: {
      xrange: async (_key: string, after: string) =>
        stream.filter(([id]) => numberOf(id) > numberOf(after.slice(1))),
      exists: async () => (hasExpired ? 0 : 1),
    } as never,
    keys: KEYS,
    pubsub: {
      async subscribe(channel: string, onMessage: OnMessage) {
        const all = handlers.get(channel) ?? new Set();
        handlers.set(channel, all.add(onMessage));
      },
      unsubscribe(channel: string, onMessage: OnMessage) {
        handlers.get(channel)?.delete(onMessage);
        if (handlers.get(channel)?.size === 0) handlers.delete(channel);
      },
      onReconnect: (recheck: () => void) => void (reconnected = recheck),
    } as never,
    runState: { read: async () => [run] } as never,
    queue: {
      async positions() {
        await readsPlaces?.();
        return positions;
      },
    } as never,
    log: silentLogger(),
  });
  onTestFinished(() => mirrors.close());
  let n = 0;
  return {
    mirrors,
    handlers,
    reconnect: () => reconnected(),
    /** The job ended so long ago that nothing of its run is left. */
    expire: () => void (hasExpired = true),
    /** Writes an event to the stream, and publishes it unless it is lost on the way. */
    write: (
      event: Exclude<JobEvent, { event: 'preview' }>,
      way: 'published' | 'lost' = 'published',
    ): void => {
      const id = `1-${++n}`;
      stream.push([id, ['e', stringifyJson(event)]]);
      if (way === 'published') send(KEYS.eventChannel('j'), `e${id}\n${stringifyJson(event)}`);
    },
  };
}

function numberOf(id: string): number {
  const [fence = 0, n = 0] = id.split('-').map(Number);
  return fence * 1000 + n;
}

async function textsOf(events: AsyncIterable<JobEvent>): Promise<string[]> {
  const texts: string[] = [];
  for await (const { event, data } of events) {
    if (event === 'status') texts.push(`${data.status} ${data.queue_position ?? ''}`.trim());
    if (event === 'x_text') texts.push(data.text);
  }
  return texts;
}

const never = new AbortController().signal;

test('a status that was read before an event is not emitted after it', async () => {
  // A worker takes the job while its place is read.
  const readsPlaces = async (): Promise<void> => write(running as never);
  const { mirrors, write } = open([null], { run: { status: 'queued' }, readsPlaces });
  const texts = textsOf(await mirrors.subscribe('j', never));
  write(ended as never);
  expect(await texts).toEqual(['running', 'succeeded']);
});

test('a gap in the numbers is filled from the stream', async () => {
  const { mirrors, write } = open();
  const texts = textsOf(await mirrors.subscribe('j', never));
  write(running as never);
  write(step(1) as never, 'lost');
  write(step(2) as never);
  write(ended as never);
  expect(await texts).toEqual(['queued', 'running', '1', '2', 'succeeded']);
});

test('after a lost connection missed events are read from the stream', async () => {
  const { mirrors, write, reconnect } = open();
  const texts = textsOf(await mirrors.subscribe('j', never));
  for (const event of [running, step(1), ended]) write(event as never, 'lost');
  reconnect();
  expect(await texts).toEqual(['queued', 'running', '1', 'succeeded']);
});

test('after a lost connection the feed of a job that ended long ago is closed', async () => {
  const { mirrors, write, reconnect, expire } = open();
  const texts = textsOf(await mirrors.subscribe('j', never));
  write(running as never);
  expire();
  reconnect();
  expect(await texts).toEqual(['queued', 'running']);
});

test('waiting jobs get their new queue position within half a second', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { mirrors, write } = open([4]);
  const texts = textsOf(await mirrors.subscribe('j', never));
  vi.advanceTimersByTime(500);
  await new Promise((resolve) => setImmediate(resolve));
  write(ended as never);
  expect(await texts).toEqual(['queued', 'queued 4', 'succeeded']);
});

test('only the submitter gets all events, and once', async () => {
  const { mirrors, write } = open();
  mirrors.submitted('anna', 'j');
  write(running as never);
  expect(mirrors.ofSubmitter({ user: 'bob' }, 'j', never)).toBeUndefined();
  const events = mirrors.ofSubmitter(ANNA, 'j', never);
  expect(mirrors.ofSubmitter(ANNA, 'j', never)).toBeUndefined();
  write(ended as never);
  expect(events && (await textsOf(events))).toEqual(['queued', 'running', 'succeeded']);
});

test('a mirror is closed with its last subscriber', async () => {
  const { mirrors, handlers, write } = open();
  const stops = [new AbortController(), new AbortController()];
  const all = await Promise.all(stops.map(({ signal }) => mirrors.subscribe('j', signal)));
  const read = all.map(textsOf);
  write(running as never);
  stops[0]?.abort();
  await read[0];
  expect(handlers.has(KEYS.eventChannel('j'))).toBe(true);
  stops[1]?.abort();
  await read[1];
  expect(handlers.has(KEYS.eventChannel('j'))).toBe(false);
});
