import { steadyNow } from '../lib/steady-clock.ts';
import type { RedisLinks } from '../redis.ts';
import type { Logger } from '../telemetry.ts';
import type { Crew, PromptJournal } from '../v1/prompt-journal.ts';
import { within } from '../within.ts';
import { leadOver } from './lead.ts';
import { type Line, createLine } from './line.ts';
import { createEar, wordOf } from './news.ts';
import { LEASE_MS, defineScripts } from './scripts.ts';
import { createEntryStore } from './store.ts';
import { createWatchers } from './watchers.ts';

type Options = {
  readonly links: RedisLinks;
  /** Tells this process from all others, and from itself after a restart. */
  readonly instance: string;
  readonly log: Logger;
};

export type SharedJournal = {
  readonly journal: PromptJournal;
  /** What else this process may write of them. */
  readonly lead: ReturnType<typeof leadOver>;
};

/** How often leases are renewed, vacant prompts looked for, and everything compared. */
const EVERY_MS = { renew: LEASE_MS * 0.3, look: 1000, resync: 30_000 } as const;
/** What has ended is remembered so long, as its frames are. */
const KEPT_MS = 120_000;
/** An answer that took longer tells that Redis was away. */
const SLOW_MS = 1000;
/** A call is answered from what is known after that. */
const PATIENCE_MS = 2000;

/**
 * The journal that several processes share, in one Redis. Whoever holds the lease of a prompt
 * appends to its stream; all hear of it, and read the stream where they have missed something.
 */
export function createSharedJournal({ links, instance, log }: Options): SharedJournal {
  const redis = links.connect();
  const { prefix, channels } = links;
  const scripts = defineScripts(redis, links);
  // A client waits for this one. Done after all, its lease runs out and it is swept away.
  const { claim } = defineScripts(links.commands, links);
  const lines = new Map<string, Line>();
  const discoveries = new Map<string, Promise<void>>();
  /** Being discovered, with their first entry. */
  const begun = new Set<string>();
  const timers: NodeJS.Timeout[] = [];
  let crew: Crew | undefined;
  let patientUntilMs = 0;
  let isClosed = false;

  const watchers = createWatchers({ redis, channels });
  const store = createEntryStore({ redis, prefix, scripts, ...watchers });
  const ear = createEar({
    links,
    news: {
      onEntry(key, n, text, picture) {
        const line = lines.get(key);
        if (!line) {
          if (n === 1) begun.add(key);
          return void discover(key);
        }
        if (line.token() === undefined) line.hear(n, text, picture).catch(complain('an entry'));
      },
      onReceived(key, audience, upTo, from) {
        if (from !== instance) lines.get(key)?.receivedElsewhere(audience, upTo);
      },
      onFetched: (user, promptId) => crew?.fetched(user, promptId),
      onCancel: (key) => crew?.cancelAsked(key),
      onVacant: () => void look(),
      onListening() {
        if (timers.length > 0) waitForOthers();
        void resync();
      },
    },
  });

  function complain(what: string): (error: unknown) => void {
    return (error) => {
      if (!isClosed) log.warn({ err: error }, `${what} could not be shared`);
    };
  }

  function lineOf(key: string): Line {
    const known = lines.get(key);
    if (known) return known;
    const line = createLine(key, store);
    lines.set(key, line);
    return line;
  }

  function discover(key: string): Promise<void> {
    const task =
      discoveries.get(key) ??
      Promise.resolve(crew?.discover(key))
        .catch(complain('a prompt'))
        .finally(() => {
          discoveries.delete(key);
          begun.delete(key);
        });
    discoveries.set(key, task);
    return task;
  }

  function led(): Line[] {
    return [...lines.values()].filter((line) => line.token() !== undefined);
  }

  /** Keys and tokens in turn. */
  function tokens(): string[] {
    return led().flatMap((line) => [line.key, line.token() ?? '']);
  }

  const renew = oneAtATime(async () => {
    const mine = led();
    const lost = mine.length > 0 ? ((await scripts.renew(...tokens())) as string[]) : [];
    for (const key of lost) lines.get(key)?.lose();
    await watchers.count(mine.map((line) => line.user()));
  }, complain('leases'));

  const look = oneAtATime(async () => {
    const askedAtMs = steadyNow();
    const keys = (await scripts.vacant()) as string[];
    if (steadyNow() - askedAtMs > SLOW_MS) waitForOthers();
    if (steadyNow() < patientUntilMs) return;
    const theirs = keys.filter((key) => lines.get(key)?.token() === undefined);
    if (theirs.length > 0) await crew?.vacant(theirs);
    forgetOver();
  }, complain('vacant prompts'));

  /** When Redis was away for all, those that live renew their leases as soon as it is back. */
  function waitForOthers(): void {
    patientUntilMs = steadyNow() + LEASE_MS;
  }

  const resync = oneAtATime(async () => {
    const keys = await redis.zrange(`${prefix}leases`, 0, '-1');
    for (const key of keys) if (!lines.has(key)) await discover(key);
    for (const line of lines.values()) if (!line.isOver()) await line.catchUp();
    const leased = new Set(keys);
    for (const line of lines.values()) {
      if (!line.isOver() && !leased.has(line.key)) await concludeIfForgotten(line);
    }
  }, complain('what was missed'));

  /** It ended while nothing was heard here, for longer than anybody remembers how. */
  async function concludeIfForgotten(line: Line): Promise<void> {
    if (line.token() !== undefined) return;
    const isLeased = (await redis.zscore(`${prefix}leases`, line.key)) !== null;
    if (isLeased || (await redis.exists(`${prefix}entries:${line.key}`)) > 0) return;
    const end = await crew?.endOf(line.key);
    if (end === 'none') await scripts.register(line.key);
    else if (end) await line.conclude(end);
  }

  const overSince = new Map<Line, number>();

  function forgetOver(): void {
    for (const line of lines.values()) {
      if (line.isOver() && !overSince.has(line)) overSince.set(line, steadyNow());
    }
    for (const [line, sinceMs] of overSince) {
      if (steadyNow() - sinceMs < KEPT_MS) continue;
      overSince.delete(line);
      lines.delete(line.key);
    }
  }

  /** How things are here is told even when Redis is away. */
  async function settled(user: string): Promise<void> {
    await ear.settled();
    await Promise.all(discoveries.values());
    await Promise.all(
      [...lines.values()].filter((line) => line.user() === user).map((line) => line.idle()),
    );
  }

  const journal: PromptJournal = {
    async claim(key) {
      const token = (await claim(key, instance)) as string;
      lineOf(key).begin(token);
    },
    async takeOver(key) {
      const token = (await scripts.takeOver(key, instance)) as string | null;
      if (token === null) return false;
      await lineOf(key).lead(token);
      return true;
    },
    async drop(key) {
      const token = lines.get(key)?.token();
      lines.delete(key);
      if (token !== undefined) await scripts.drop(key, token);
    },
    join({ key, user }, hearer) {
      const since = begun.has(key) ? 'its start' : 'later';
      lineOf(key).join(user, hearer, since).catch(complain('a prompt'));
    },
    append: (key, entry) => lineOf(key).append(entry),
    leads: (key) => lines.get(key)?.token() !== undefined,
    received(key, audience, at) {
      // At once: it is on its way before the frame is, so that who heard that is known to have.
      scripts.received(key, at, instance, audience).catch(complain('a receipt'));
    },
    fetched(user, promptId) {
      redis
        .publish(`${channels}events`, `f ${wordOf(user)} ${wordOf(promptId)}`)
        .catch(complain('a fetched result'));
    },
    askCancel(key) {
      redis.publish(`${channels}events`, `c ${key}`).catch(complain('a cancel'));
    },
    isWatched: watchers.isWatched,
    watch(user, isThere) {
      watchers.note(user, isThere);
      ear.watch(user, isThere);
    },
    async settled(user) {
      await within(PATIENCE_MS, settled(user));
    },
    async start(given, live) {
      crew = given;
      if (live.length > 0) await scripts.register(...live);
      await ear.open();
      await look();
      timers.push(
        setInterval(() => void renew(), EVERY_MS.renew),
        setInterval(() => void look(), EVERY_MS.look),
        setInterval(() => void resync(), EVERY_MS.resync),
      );
    },
    async close() {
      isClosed = true;
      for (const timer of timers) clearInterval(timer);
      ear.close();
      await within(PATIENCE_MS, scripts.giveBack(...tokens())).catch(() => false);
      redis.disconnect();
    },
  };
  return { journal, lead: leadOver(lines) };
}

/** Called again while it is at it, it goes on with what it is at. */
function oneAtATime(
  act: () => Promise<void>,
  onError: (error: unknown) => void,
): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () =>
    (running ??= act()
      .catch(onError)
      .finally(() => (running = undefined)));
}
