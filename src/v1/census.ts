import type { CallCount, CallStore } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import type { V1RouteName } from '../translate/successors.ts';

/**
 * One call of v1; no body, no key, no path.
 * @internal
 */
export type Visit = {
  readonly user: string;
  readonly agent: string;
  /** Empty: the call names none. */
  readonly clientId: string;
  readonly route: V1RouteName;
};

/** Counts who still calls v1. */
export type Census = {
  /** In memory only: what a call costs is not to be seen. */
  readonly count: (visit: Visit) => void;
  /** Writes down what was counted so far. */
  flush(): Promise<void>;
  close(): Promise<void>;
};

type Deps = {
  readonly calls: CallStore;
  readonly log: Logger;
  readonly now: () => number;
};

/** What is yet to be written down; each call comes by. */
type Counting = { -readonly [name in keyof CallCount]: CallCount[name] };

/** Stands for whoever is not told apart any more. */
export const OTHERS = '(others)';

/** Counts lost by a kill -9 are those of so long; they are no promise to anybody. */
const FLUSH_MS = 3000;
const DAY_MS = 24 * 60 * 60_000;
const KEPT_MS = 90 * DAY_MS;
/** Told apart, so that nobody can fill the disk with made-up names. */
const MOST = { clients: 1000, idsOfClient: 20 } as const;

export async function openCensus({ calls, log, now }: Deps): Promise<Census> {
  await calls.expire(now() - KEPT_MS);
  const known = new Map<string, Set<string>>();
  for (const { user, agent, clientId } of await calls.list()) idsOf(user, agent).add(clientId);
  let waiting = new Map<string, Counting>();
  let flushing = Promise.resolve();
  let expiresAtMs = now() + DAY_MS;

  function idsOf(user: string, agent: string): Set<string> {
    const key = `${user}\0${agent}`;
    const ids = known.get(key) ?? new Set();
    known.set(key, ids);
    return ids;
  }

  function told({ user, agent, clientId, route }: Visit): Visit {
    const ids = known.get(`${user}\0${agent}`);
    if (ids?.has(clientId)) return { user, agent, clientId, route };
    if (ids === undefined && known.size >= MOST.clients) {
      return { user: OTHERS, agent: OTHERS, clientId: '', route };
    }
    const isMany = clientId !== '' && (ids?.size ?? 0) >= MOST.idsOfClient;
    if (!isMany) idsOf(user, agent).add(clientId);
    return { user, agent, clientId: isMany ? OTHERS : clientId, route };
  }

  async function write(rows: readonly CallCount[]): Promise<void> {
    try {
      if (rows.length > 0) await calls.add(rows);
      if (now() < expiresAtMs) return;
      expiresAtMs = now() + DAY_MS;
      await calls.expire(now() - KEPT_MS);
    } catch (error) {
      log.warn({ err: error }, 'counts of v1 calls are lost');
    }
  }

  function flush(): Promise<void> {
    const rows = [...waiting.values()];
    waiting = new Map();
    flushing = flushing.then(() => write(rows));
    return flushing;
  }

  const timer = setInterval(() => void flush(), FLUSH_MS);
  timer.unref();
  return {
    flush,
    count(visit) {
      const { user, agent, clientId, route } = told(visit);
      const key = `${user}\0${agent}\0${clientId}\0${route}`;
      const atMs = now();
      const row = waiting.get(key);
      if (row === undefined) {
        const times = { count: 1, firstAtMs: atMs, lastAtMs: atMs };
        return void waiting.set(key, { user, agent, clientId, route, ...times });
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
export function notCounted(): void {}
