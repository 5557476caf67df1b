import { LRUCache } from 'lru-cache';
import type { CallCount, Ledger } from '../ledger.ts';
import { atMost } from '../../lib/lru-size.ts';
import { byClient } from './call-counts.ts';

/** So many ids of each kind are remembered with the partition that has their row. */
const MAX_REMEMBERED = 100_000;

/** Makes a call of a store in the partition that has its rows, or in several. */
type Route<Reply, Args extends unknown[] = unknown[]> = (
  call: (ledger: Ledger) => Reply,
  ...args: Args
) => Reply;

type StoreName = Exclude<keyof Ledger, 'committed' | 'synced' | 'close'>;

type Routes = {
  readonly [Name in StoreName]: {
    readonly [method in keyof Ledger[Name]]: Ledger[Name][method] extends (
      ...args: infer Args
    ) => infer Reply
      ? Route<Reply, Args>
      : never;
  };
};

/**
 * One ledger of several, each of which has its share of the users: in a Redis Cluster a script
 * touches the keys of one partition only. Lists of all users are read from all partitions.
 */
export function partitionedLedger(
  ledgers: readonly Ledger[],
  { indexOf, close }: { readonly indexOf: (user: string) => number; close: () => Promise<void> },
): Ledger {
  const to = createRoutes(ledgers, indexOf);
  const routes: Routes = {
    prompts: promptRoutes(to),
    ...recordRoutes(to),
    ...modelRoutes(to),
    ...userRoutes(to),
  };
  const stores = Object.entries(routes).map(([store, methods]) => [
    store,
    routedStore(store, methods),
  ]);
  return {
    ...(Object.fromEntries(stores) as Pick<Ledger, StoreName>),
    committed: async () => void (await Promise.all(ledgers.map((ledger) => ledger.committed()))),
    synced: async () => void (await Promise.all(ledgers.map((ledger) => ledger.synced()))),
    close,
  };
}

type AnyLedger = Record<string, Record<string, (...args: unknown[]) => unknown>>;

/** One store of the ledger: calls it where the route of each method says. */
function routedStore(store: string, routes: object) {
  const methods = Object.entries(routes).map(([method, route]: [string, Route<unknown>]) => [
    method,
    (...args: unknown[]) =>
      route((ledger) => (ledger as unknown as AnyLedger)[store]?.[method]?.(...args), ...args),
  ]);
  return Object.fromEntries(methods) as object;
}

/** The routes of most calls. */
function createRoutes(ledgers: readonly Ledger[], indexOf: (user: string) => number) {
  const of = (user: string): Ledger => ledgers[indexOf(user)] as Ledger;
  const all = <Reply>(call: (ledger: Ledger) => Promise<Reply>): Promise<Reply[]> =>
    Promise.all(ledgers.map(call));
  return {
    of,
    all,
    user: <Reply>(call: (ledger: Ledger) => Reply, user: string): Reply => call(of(user)),
    owner: <Reply>(call: (ledger: Ledger) => Reply, row: { readonly user: string }): Reply =>
      call(of(row.user)),
    everywhere: async (call: (ledger: Ledger) => Promise<void>): Promise<void> =>
      void (await all(call)),
    list: async <Row>(call: (ledger: Ledger) => Promise<readonly Row[]>): Promise<Row[]> =>
      (await all(call)).flat(),
    sum: async (call: (ledger: Ledger) => Promise<number>): Promise<number> =>
      (await all(call)).reduce((total, one) => total + one, 0),
    rows: (store: 'prompts' | 'jobs' | 'assets') => createLocator({ ledgers, of }, store),
  };
}

type CommonRoutes = ReturnType<typeof createRoutes>;

function promptRoutes({ of, all, user, everywhere, rows }: CommonRoutes): Routes['prompts'] {
  const { inserted, at, get } = rows('prompts');
  return {
    ...each(inserted, 'insert', 'insertBeforeLater'),
    ...each(at, 'setState', 'setIntent', 'askCancel', 'linkJob', 'unlinkJob'),
    ...each(at, 'begin', 'remove', 'finish'),
    ...each(user, 'liveKeys', 'find', 'findByJob', 'history', 'outlines'),
    ...each(user, 'deleteHistory', 'clearHistory'),
    get,
    live: async (call, one) => (one === undefined ? merged(await all(call)) : call(of(one))),
    hasJob: async (call) => (await all(call)).includes(true),
    entries: (call, keys) => at(call, keys[0] ?? ''),
    pruneHistory: everywhere,
    highestNumber: async (call) => Math.max(...(await all(call))),
  };
}

function recordRoutes({ user, list, sum, rows }: CommonRoutes): Pick<Routes, 'jobs' | 'assets'> {
  const { inserted, at, get } = rows('jobs');
  const assets = rows('assets');
  return {
    jobs: {
      insert: inserted,
      ...each(at, 'update', 'remove'),
      get,
      list: user,
      expiredBy: list,
      unfinished: async (call) =>
        (await list(call)).toSorted((a, b) => a.order - b.order || a.createdAtMs - b.createdAtMs),
    },
    assets: {
      insert: assets.inserted,
      remove: assets.at,
      get: assets.get,
      ...each(user, 'byHash', 'byFilePath', 'outputPaths'),
      ...each(list, 'ofJob', 'expiredBy'),
      async oldest(call, limit) {
        const found = (await list(call)).toSorted((a, b) => a.createdAtMs - b.createdAtMs);
        return found.slice(0, Math.max(0, limit));
      },
      // The same bytes of users in two partitions count twice.
      ...each(sum, 'countByHash', 'totalBytes'),
    },
  };
}

function modelRoutes({ of, user, everywhere, sum }: CommonRoutes) {
  const ofScope = <Reply>(call: (ledger: Ledger) => Reply, row: { readonly scope: string }) =>
    call(of(row.scope));
  return {
    replays: {
      ...each(ofScope, 'reserve', 'record', 'consume', 'release'),
      expire: everywhere,
      recordedBytes: sum,
    },
    // In the partition of their request, as later calls name nothing else.
    modelCalls: {
      insert: (call, { requestId }) => call(of(requestId)),
      ...each(user, 'amend', 'get'),
      chargedCents: sum,
      expire: everywhere,
    },
  } satisfies Partial<Routes>;
}

function userRoutes({ of, user, owner, everywhere, list }: CommonRoutes) {
  return {
    files: {
      ...each(owner, 'put', 'claim'),
      ...each(user, 'get', 'byAsset', 'newestNamed', 'list', 'remove'),
    },
    settings: { all: user, merge: user },
    keys: { ofAsset: user, expire: everywhere },
    calls: {
      async add(_call, rows) {
        const byLedger = new Map<Ledger, CallCount[]>();
        for (const row of rows) {
          const ledger = of(row.user);
          byLedger.set(ledger, [...(byLedger.get(ledger) ?? []), row]);
        }
        await Promise.all([...byLedger].map(([{ calls }, some]) => calls.add(some)));
      },
      list: async (call) => (await list(call)).toSorted(byClient),
      expire: everywhere,
    },
  } satisfies Partial<Routes>;
}

/** The same route for each of these methods. */
function each<Shared, Method extends string>(route: Shared, ...methods: Method[]) {
  return Object.fromEntries(methods.map((method) => [method, route])) as Record<Method, Shared>;
}

/** By their time; those of one list stay in their order, also when a clock was set back. */
function merged<Row extends { readonly createdAtMs: number }>(lists: readonly (readonly Row[])[]) {
  const timed = lists.flatMap((rows) => {
    let atMs = 0;
    return rows.map((row) => ({ row, atMs: (atMs = Math.max(atMs, row.createdAtMs)) }));
  });
  return timed.toSorted((a, b) => a.atMs - b.atMs).map(({ row }) => row);
}

type LocatedRow = { readonly user: string } & ({ readonly key: string } | { readonly id: string });

/** Routes of calls about a row, by its id: callers do not always know its user. */
function createLocator(
  { ledgers, of }: { readonly ledgers: readonly Ledger[]; readonly of: (user: string) => Ledger },
  store: 'prompts' | 'jobs' | 'assets',
) {
  const known = new LRUCache<string, Ledger>(atMost(MAX_REMEMBERED));

  /** Reads the row; from now on it is found there. */
  async function get<Row>(call: (ledger: Ledger) => Promise<Row>, id: string) {
    const ledger = known.get(id);
    if (ledger) return call(ledger);
    const rows = await Promise.all(ledgers.map(call));
    const at = rows.findIndex((row) => row !== undefined);
    known.set(id, ledgers[at]);
    return rows[at] as Row;
  }

  const inserted = <Reply>(call: (ledger: Ledger) => Reply, row: LocatedRow): Reply => {
    const ledger = of(row.user);
    known.set('key' in row ? row.key : row.id, ledger);
    return call(ledger);
  };

  /**
   * Acts where the row is, at once if that is known; for a row that does not exist anywhere: what is
   * done there has no effect.
   */
  const at = async <Reply>(
    call: (ledger: Ledger) => Promise<Reply>,
    id: string,
  ): Promise<Reply> => {
    if (!known.has(id)) await get<unknown>((ledger) => ledger[store].get(id), id);
    return call(known.get(id) ?? of(''));
  };

  return { inserted, at, get };
}
