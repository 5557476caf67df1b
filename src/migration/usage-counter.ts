import type { CallCount, CallStore } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { V1RouteName } from './v1-routes.ts';

/**
 * The counted facts about a v1 call. They contain no body, key or path.
 * @internal
 */
export type CountedCall = {
  readonly user: string;
  readonly agent: string;
  /** Empty when the call names no client id. */
  readonly clientId: string;
  readonly route: V1RouteName;
};

/** Counts the v1 calls of each client. */
export type UsageCounter = {
  /** Counts a call in memory, so that calls do not wait for the ledger. */
  readonly count: (call: CountedCall) => void;
  /** Writes the counts to the ledger. */
  flush(): Promise<void>;
  close(): Promise<void>;
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

/** Opens the counter. It writes its counts every three seconds, and removes counts after 90 days. */
export async function openUsageCounter({
  calls,
  log,
  now,
}: {
  readonly calls: CallStore;
  readonly log: Logger;
  readonly now: () => number;
}): Promise<UsageCounter> {
  let knownIds = new Map<string, Set<string>>();
  let expiresAtMs = 0;
  await removeExpired();
  let pending = new Map<string, MutableCallCount>();
  let lastFlush = Promise.resolve();

  async function removeExpired(): Promise<void> {
    expiresAtMs = now() + DAY_MS;
    await calls.expire(now() - RETENTION_MS);
    const rows = await calls.list();
    knownIds = new Map();
    for (const { user, agent, clientId } of rows) idsOf(user, agent).add(clientId);
  }

  function idsOf(user: string, agent: string): Set<string> {
    const key = `${user}\0${agent}`;
    const ids = knownIds.get(key) ?? new Set();
    knownIds.set(key, ids);
    return ids;
  }

  function capped({ user, agent, clientId, route }: CountedCall): CountedCall {
    const ids = knownIds.get(`${user}\0${agent}`);
    if (ids?.has(clientId)) return { user, agent, clientId, route };
    if (ids === undefined && knownIds.size >= LIMITS.clients) {
      return { user: OTHER_CLIENTS, agent: OTHER_CLIENTS, clientId: '', route };
    }
    const isOverLimit = clientId !== '' && (ids?.size ?? 0) >= LIMITS.idsOfClient;
    if (!isOverLimit) idsOf(user, agent).add(clientId);
    return { user, agent, clientId: isOverLimit ? OTHER_CLIENTS : clientId, route };
  }

  async function write(rows: readonly CallCount[]): Promise<void> {
    try {
      if (rows.length > 0) await calls.add(rows);
      if (now() >= expiresAtMs) await removeExpired();
    } catch (error) {
      log.warn({ event: 'usage.counts_lost', err: error }, 'counts of v1 calls are lost');
    }
  }

  function flush(): Promise<void> {
    const rows = [...pending.values()];
    pending = new Map();
    lastFlush = lastFlush.then(() => write(rows));
    return lastFlush;
  }

  const timer = setInterval(() => void flush(), FLUSH_INTERVAL_MS);
  timer.unref();
  return {
    flush,
    count(call) {
      const { user, agent, clientId, route } = capped(call);
      const key = `${user}\0${agent}\0${clientId}\0${route}`;
      const atMs = now();
      const row = pending.get(key);
      if (row === undefined) {
        const times = { count: 1, firstAtMs: atMs, lastAtMs: atMs };
        return void pending.set(key, { user, agent, clientId, route, ...times });
      }
      row.count++;
      row.lastAtMs = atMs;
    },
    async close() {
      clearInterval(timer);
      await flush();
    },
  };
}
