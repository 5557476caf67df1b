import type { CallCount, CallStore } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { V1RouteName } from './successors.ts';

/**
 * One call of v1; no body, no key, no path.
 * @internal
 */
export type CountedCall = {
  readonly user: string;
  readonly agent: string;
  /** Empty: the call names none. */
  readonly clientId: string;
  readonly route: V1RouteName;
};

/** Counts who still calls v1. */
export type UsageCounter = {
  /** In memory only: what a call costs is not to be seen. */
  readonly count: (call: CountedCall) => void;
  /** Writes down what was counted so far. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

type UsageCounterOptions = {
  readonly calls: CallStore;
  readonly log: Logger;
  readonly now: () => number;
};

/** What is yet to be written down; each call comes by. */
type MutableCallCount = { -readonly [name in keyof CallCount]: CallCount[name] };

/** Stands for whoever is not told apart any more. */
export const OTHER_CLIENTS = '(others)';

/** Counts lost by a kill -9 are those of so long; they are no promise to anybody. */
const FLUSH_INTERVAL_MS = 3000;
const DAY_MS = 24 * 60 * 60_000;
const RETENTION_MS = 90 * DAY_MS;
/** Told apart, so that nobody can fill the disk with made-up names. */
const LIMITS = { clients: 1000, idsOfClient: 20 } as const;

export async function openUsageCounter({
  calls,
  log,
  now,
}: UsageCounterOptions): Promise<UsageCounter> {
  await calls.expire(now() - RETENTION_MS);
  const knownIds = new Map<string, Set<string>>();
  for (const { user, agent, clientId } of await calls.list()) idsOf(user, agent).add(clientId);
  let pending = new Map<string, MutableCallCount>();
  let lastFlush = Promise.resolve();
  let expiresAtMs = now() + DAY_MS;

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
      if (now() < expiresAtMs) return;
      expiresAtMs = now() + DAY_MS;
      await calls.expire(now() - RETENTION_MS);
    } catch (error) {
      log.warn({ err: error }, 'counts of v1 calls are lost');
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

/** A traced session shows how a program could do without v1; it is no use of v1. */
export function ignoreUsage(): void {}
