import type { CallCount, CallStore } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { V1RouteName } from './v1-routes.ts';

/** The counted facts about a v1 call. They contain no body, key or path. */
export type CountedCall = {
  readonly user: string;
  readonly agent: string;
  /** Empty when the call names no client id. */
  readonly clientId: string;
  readonly route: V1RouteName;
};

/** A count that is not flushed yet. */
type MutableCallCount = { -readonly [name in keyof CallCount]: CallCount[name] };

/** The name under which further clients are counted together. */
export const OTHER_CLIENTS = '(others)';

/**
 * The time between writes. A `kill -9` loses the counts since the last one: they are statistics, not acknowledged
 * data.
 */
const FLUSH_INTERVAL_MS = 3000;
const DAY_MS = 24 * 60 * 60_000;
const RETENTION_MS = 90 * DAY_MS;
/** The maximum numbers of clients and of their ids, so that invented names cannot fill the disk. */
const LIMITS = { clients: 1000, idsOfClient: 20 } as const;

type UsageCounterOptions = {
  readonly calls: CallStore;
  readonly log: Logger;
  readonly now: () => number;
};

export async function openUsageCounter(options: UsageCounterOptions): Promise<UsageCounter> {
  const counter = new UsageCounter(options);
  await counter.start();
  return counter;
}

/** Counts the v1 calls of each client. */
export class UsageCounter {
  readonly #calls: CallStore;
  readonly #log: Logger;
  readonly #now: () => number;
  #knownIds = new Map<string, Set<string>>();
  #expiresAtMs = 0;
  #pending = new Map<string, MutableCallCount>();
  #lastFlush = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor({ calls, log, now }: UsageCounterOptions) {
    this.#calls = calls;
    this.#log = log;
    this.#now = now;
  }

  /** Writes the counts every three seconds, and removes counts after 90 days. */
  async start(): Promise<void> {
    await this.#removeExpired();
    this.#timer = setInterval(() => void this.flush(), FLUSH_INTERVAL_MS).unref();
  }

  /** Counts a call in memory, so that calls do not wait for the ledger. */
  count(call: CountedCall): void {
    const { user, agent, clientId, route } = this.#capped(call);
    const key = `${user}\0${agent}\0${clientId}\0${route}`;
    const atMs = this.#now();
    const row = this.#pending.get(key);
    if (row === undefined) {
      const times = { count: 1, firstAtMs: atMs, lastAtMs: atMs };
      return void this.#pending.set(key, { user, agent, clientId, route, ...times });
    }
    row.count++;
    row.lastAtMs = atMs;
  }

  /** Writes the counts to the ledger. */
  flush(): Promise<void> {
    const rows = [...this.#pending.values()];
    this.#pending = new Map();
    this.#lastFlush = this.#lastFlush.then(() => this.#write(rows));
    return this.#lastFlush;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.flush();
  }

  async #write(rows: readonly CallCount[]): Promise<void> {
    try {
      if (rows.length > 0) await this.#calls.add(rows);
      if (this.#now() >= this.#expiresAtMs) await this.#removeExpired();
    } catch (error) {
      this.#log.warn({ event: 'usage.counts_lost', err: error }, 'counts of v1 calls are lost');
    }
  }

  async #removeExpired(): Promise<void> {
    this.#expiresAtMs = this.#now() + DAY_MS;
    await this.#calls.expire(this.#now() - RETENTION_MS);
    const rows = await this.#calls.list();
    this.#knownIds = new Map();
    for (const { user, agent, clientId } of rows) this.#idsOf(user, agent).add(clientId);
  }

  #idsOf(user: string, agent: string): Set<string> {
    const key = `${user}\0${agent}`;
    const ids = this.#knownIds.get(key) ?? new Set();
    this.#knownIds.set(key, ids);
    return ids;
  }

  #capped({ user, agent, clientId, route }: CountedCall): CountedCall {
    const ids = this.#knownIds.get(`${user}\0${agent}`);
    if (ids?.has(clientId)) return { user, agent, clientId, route };
    if (ids === undefined && this.#knownIds.size >= LIMITS.clients) {
      return { user: OTHER_CLIENTS, agent: OTHER_CLIENTS, clientId: '', route };
    }
    const isOverLimit = clientId !== '' && (ids?.size ?? 0) >= LIMITS.idsOfClient;
    if (!isOverLimit) this.#idsOf(user, agent).add(clientId);
    return { user, agent, clientId: isOverLimit ? OTHER_CLIENTS : clientId, route };
  }
}
