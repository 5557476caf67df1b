import { monotonicNow } from '../lib/clock.ts';
import type { RedisConnections } from '../lib/redis.ts';
import type { Logger } from '../observability/log.ts';
import type { LogHandlers, PromptEventLog } from '../prompts/prompt-event-log.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { createLeadership } from './leadership.ts';
import { type LogStream, createLogStream } from './log-stream.ts';
import { createSubscription, encodeWord } from './subscription.ts';
import { LEASE_MS, defineReplicationScripts } from './scripts.ts';
import { createEntryStore } from './entry-store.ts';
import { createPreviewWatchers } from './preview-watchers.ts';

type Options = {
  readonly links: RedisConnections;
  /** Unique id of this process, new after each restart. */
  readonly instance: string;
  readonly log: Logger;
};

export type SharedEventLog = {
  readonly promptEventLog: PromptEventLog;
  /** The write tokens of the prompts that this process owns. */
  readonly leadership: ReturnType<typeof createLeadership>;
};

/**
 * Intervals of renewing leases, of looking for prompts without an owner, and of a full comparison.
 */
const INTERVAL_MS = { renew: LEASE_MS * 0.3, findVacant: 1000, resync: 30_000 } as const;
/** Ended prompts are remembered this long, as their frames are. */
const ENDED_TTL_MS = 120_000;
/** A slower answer means that Redis was unreachable. */
const SLOW_REDIS_MS = 1000;
/** A call waits this long at most, then it is answered from what is known. */
const CATCH_UP_TIMEOUT_MS = 2000;

/**
 * The event log that several processes share, in one Redis. The owner of a prompt's lease appends
 * to its stream. All processes receive the entries, and read the stream where they missed some.
 */
export function createSharedEventLog({ links, instance, log }: Options): SharedEventLog {
  const redis = links.connect();
  const { prefix, channels } = links;
  const scripts = defineReplicationScripts(redis, links);
  // Runs on the other connection, since a client waits for it. If it succeeds late, its lease
  // expires and the prompt is removed.
  const { claim } = defineReplicationScripts(links.commands, links);
  const streams = new Map<string, LogStream>();
  const discoveries = new Map<string, Promise<void>>();
  /** Prompts in discovery whose first entry was received. */
  const withFirstEntry = new Set<string>();
  const timers: NodeJS.Timeout[] = [];
  let handlers: LogHandlers | undefined;
  let takeoverAllowedAtMs = 0;
  let isClosed = false;

  const watchers = createPreviewWatchers({ redis, channels });
  const store = createEntryStore({ redis, prefix, scripts, ...watchers });
  const subscription = createSubscription({
    links,
    handlers: {
      onEntry(key, n, text, picture) {
        const stream = streams.get(key);
        if (!stream) {
          if (n === 1) withFirstEntry.add(key);
          return void discover(key);
        }
        if (stream.token() === undefined)
          stream.receive(n, text, picture).catch(logFailure('an entry'));
      },
      onReceived(key, audience, upTo, sender) {
        if (sender !== instance) streams.get(key)?.receivedElsewhere(audience, upTo);
      },
      onFetched: (user, promptId) => handlers?.resultFetched(user, promptId),
      onCancel: (key) => handlers?.cancelRequested(key),
      onVacant: () => void findVacant(),
      onListening() {
        if (timers.length > 0) delayTakeover();
        void resync();
      },
    },
  });

  function logFailure(what: string): (error: unknown) => void {
    return (error) => {
      if (isClosed) return;
      log.warn({ event: 'replication.failed', err: error, what }, `could not share ${what}`);
    };
  }

  function streamOf(key: string): LogStream {
    const known = streams.get(key);
    if (known) return known;
    const stream = createLogStream(key, store);
    streams.set(key, stream);
    return stream;
  }

  function discover(key: string): Promise<void> {
    const task =
      discoveries.get(key) ??
      Promise.resolve(handlers?.discover(key))
        .catch(logFailure('a prompt'))
        .finally(() => {
          discoveries.delete(key);
          withFirstEntry.delete(key);
        });
    discoveries.set(key, task);
    return task;
  }

  function ownedStreams(): LogStream[] {
    return [...streams.values()].filter((stream) => stream.token() !== undefined);
  }

  /** Keys and tokens, alternating. */
  function keysAndTokens(): string[] {
    return ownedStreams().flatMap((stream) => [stream.key, stream.token() ?? '']);
  }

  const renew = singleFlight(async () => {
    const owned = ownedStreams();
    const lostKeys =
      owned.length > 0 ? ((await scripts.renew(...keysAndTokens())) as string[]) : [];
    for (const key of lostKeys) streams.get(key)?.loseLead();
    await watchers.refresh(owned.map((stream) => stream.user()));
  }, logFailure('leases'));

  const findVacant = singleFlight(async () => {
    const askedAtMs = monotonicNow();
    const keys = (await scripts.vacant()) as string[];
    if (monotonicNow() - askedAtMs > SLOW_REDIS_MS) delayTakeover();
    if (monotonicNow() < takeoverAllowedAtMs) return;
    const vacantKeys = keys.filter((key) => streams.get(key)?.token() === undefined);
    if (vacantKeys.length > 0) await handlers?.takeOverVacant(vacantKeys);
    removeEnded();
  }, logFailure('vacant prompts'));

  /** After an outage of Redis, live processes need time to renew their leases. */
  function delayTakeover(): void {
    takeoverAllowedAtMs = monotonicNow() + LEASE_MS;
  }

  const resync = singleFlight(async () => {
    const keys = await redis.zrange(`${prefix}leases`, 0, '-1');
    for (const key of keys) if (!streams.has(key)) await discover(key);
    for (const stream of streams.values()) if (!stream.hasEnded()) await stream.catchUp();
    const leased = new Set(keys);
    for (const stream of streams.values()) {
      if (!stream.hasEnded() && !leased.has(stream.key)) await finishIfForgotten(stream);
    }
  }, logFailure('what was missed'));

  /** It ended while this process received nothing, longer ago than entries are kept. */
  async function finishIfForgotten(stream: LogStream): Promise<void> {
    if (stream.token() !== undefined) return;
    const isLeased = (await redis.zscore(`${prefix}leases`, stream.key)) !== null;
    if (isLeased || (await redis.exists(`${prefix}entries:${stream.key}`)) > 0) return;
    const end = await handlers?.endOf(stream.key);
    if (end === 'none') await scripts.register(stream.key);
    else if (end) await stream.finish(end);
  }

  const endedSince = new Map<LogStream, number>();

  function removeEnded(): void {
    for (const stream of streams.values()) {
      if (stream.hasEnded() && !endedSince.has(stream)) endedSince.set(stream, monotonicNow());
    }
    for (const [stream, sinceMs] of endedSince) {
      if (monotonicNow() - sinceMs < ENDED_TTL_MS) continue;
      endedSince.delete(stream);
      streams.delete(stream.key);
    }
  }

  /** Waits until everything received so far is applied. */
  async function whenCaughtUp(user: string): Promise<void> {
    await subscription.whenCaughtUp();
    await Promise.all(discoveries.values());
    await Promise.all(
      [...streams.values()]
        .filter((stream) => stream.user() === user)
        .map((stream) => stream.whenIdle()),
    );
  }

  const promptEventLog: PromptEventLog = {
    async claim(key) {
      const token = (await claim(key, instance)) as string;
      streamOf(key).startNew(token);
    },
    async takeOver(key) {
      const token = (await scripts.takeOver(key, instance)) as string | null;
      if (token === null) return false;
      await streamOf(key).takeLead(token);
      return true;
    },
    async discard(key) {
      const token = streams.get(key)?.token();
      streams.delete(key);
      if (token !== undefined) await scripts.drop(key, token);
    },
    subscribe({ key, user }, subscriber) {
      const since = withFirstEntry.has(key) ? 'its start' : 'later';
      streamOf(key).subscribe(user, subscriber, since).catch(logFailure('a prompt'));
    },
    append: (key, entry) => streamOf(key).append(entry),
    isLeader: (key) => streams.get(key)?.token() !== undefined,
    markReceived(key, audience, position) {
      // Sent before the frame, so that other processes know who has it.
      scripts.received(key, position, instance, audience).catch(logFailure('a receipt'));
    },
    resultFetched(user, promptId) {
      redis
        .publish(`${channels}events`, `f ${encodeWord(user)} ${encodeWord(promptId)}`)
        .catch(logFailure('a fetched result'));
    },
    requestCancel(key) {
      redis.publish(`${channels}events`, `c ${key}`).catch(logFailure('a cancel'));
    },
    isWatched: watchers.isWatched,
    watch(user, isThere) {
      watchers.setLocal(user, isThere);
      subscription.watch(user, isThere);
    },
    async whenCaughtUp(user) {
      await completesWithin(CATCH_UP_TIMEOUT_MS, whenCaughtUp(user));
    },
    async start(logHandlers, liveKeys) {
      handlers = logHandlers;
      if (liveKeys.length > 0) await scripts.register(...liveKeys);
      await subscription.open();
      await findVacant();
      timers.push(
        setInterval(() => void renew(), INTERVAL_MS.renew),
        setInterval(() => void findVacant(), INTERVAL_MS.findVacant),
        setInterval(() => void resync(), INTERVAL_MS.resync),
      );
    },
    async close() {
      isClosed = true;
      for (const timer of timers) clearInterval(timer);
      subscription.close();
      await completesWithin(CATCH_UP_TIMEOUT_MS, scripts.giveBack(...keysAndTokens())).catch(
        () => false,
      );
      redis.disconnect();
    },
  };
  return { promptEventLog, leadership: createLeadership(streams) };
}

/** Calls during a run share that run. */
function singleFlight(
  act: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () =>
    (running ??= act()
      .catch(onError)
      .finally(() => (running = undefined)));
}
