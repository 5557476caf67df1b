import { LRUCache } from 'lru-cache';
import type { AssetStore, CallCount, CallStore, JobStore, Ledger, PromptStore } from '../ledger.ts';
import { atMost } from '../../lib/lru-size.ts';
import { byClient } from './call-counts.ts';

/** So many ids of each kind are remembered with the partition that has their row. */
const MAX_REMEMBERED = 100_000;

/**
 * One ledger of several, each of which has its share of the users: in a Redis Cluster a script
 * touches the keys of one partition only. Lists of all users are read from all partitions.
 */
export function partitionedLedger(
  ledgers: readonly Ledger[],
  { indexOf, close }: { readonly indexOf: (user: string) => number; close: () => Promise<void> },
): Ledger {
  const to = createRouter(ledgers, indexOf);
  const { of, everywhere, sum } = to;
  return {
    prompts: partitionedPrompts(to),
    jobs: partitionedJobs(to),
    assets: partitionedAssets(to),
    calls: partitionedCalls(to),
    files: {
      put: (row) => of(row.user).files.put(row),
      claim: (row) => of(row.user).files.claim(row),
      get: (user, name) => of(user).files.get(user, name),
      byAsset: (user, assetId) => of(user).files.byAsset(user, assetId),
      newestNamed: (user, name) => of(user).files.newestNamed(user, name),
      list: (user, type) => of(user).files.list(user, type),
      remove: (user, name) => of(user).files.remove(user, name),
    },
    settings: {
      all: (user) => of(user).settings.all(user),
      merge: (user, settings) => of(user).settings.merge(user, settings),
    },
    keys: {
      ofAsset: (user, key) => of(user).keys.ofAsset(user, key),
      expire: (beforeMs) => everywhere(({ keys }) => keys.expire(beforeMs)),
    },
    replays: {
      reserve: (row, freeBeforeMs) => of(row.scope).replays.reserve(row, freeBeforeMs),
      record: (holder, answer) => of(holder.scope).replays.record(holder, answer),
      consume: (holder, atMs) => of(holder.scope).replays.consume(holder, atMs),
      release: (holder) => of(holder.scope).replays.release(holder),
      expire: (beforeMs) => everywhere(({ replays }) => replays.expire(beforeMs)),
      recordedBytes: () => sum(({ replays }) => replays.recordedBytes()),
    },
    // In the partition of their request, as later calls name nothing else.
    modelCalls: {
      insert: (row) => of(row.requestId).modelCalls.insert(row),
      amend: (requestId, patch) => of(requestId).modelCalls.amend(requestId, patch),
      get: (requestId) => of(requestId).modelCalls.get(requestId),
      chargedCents: (workspace) => sum(({ modelCalls }) => modelCalls.chargedCents(workspace)),
      expire: (beforeMs) => everywhere(({ modelCalls }) => modelCalls.expire(beforeMs)),
    },
    committed: () => everywhere((ledger) => ledger.committed()),
    synced: () => everywhere((ledger) => ledger.synced()),
    close,
  };
}

type Router = ReturnType<typeof createRouter>;

function createRouter(ledgers: readonly Ledger[], indexOf: (user: string) => number) {
  const of = (user: string): Ledger => ledgers[indexOf(user)] as Ledger;
  const all = <Reply>(call: (ledger: Ledger) => Promise<Reply>): Promise<Reply[]> =>
    Promise.all(ledgers.map(call));
  return {
    of,
    all,
    everywhere: async (call: (ledger: Ledger) => Promise<void>) => void (await all(call)),
    list: async <Row>(call: (ledger: Ledger) => Promise<readonly Row[]>): Promise<Row[]> =>
      (await all(call)).flat(),
    sum: async (call: (ledger: Ledger) => Promise<number>): Promise<number> =>
      (await all(call)).reduce((total, one) => total + one, 0),
    byId: <Row>(read: ReadRow<Row>) => createLocator({ ledgers, of }, read),
  };
}

type ReadRow<Row> = (ledger: Ledger, id: string) => Promise<Row | undefined>;

/** Finds rows by their ids: callers do not always know the user. */
function createLocator<Row>(
  { ledgers, of }: { readonly ledgers: readonly Ledger[]; readonly of: (user: string) => Ledger },
  read: ReadRow<Row>,
) {
  const known = new LRUCache<string, Ledger>(atMost(MAX_REMEMBERED));

  /** Reads the row; from now on it is found there. */
  async function get(id: string): Promise<Row | undefined> {
    const ledger = known.get(id);
    if (ledger) return read(ledger, id);
    const rows = await Promise.all(ledgers.map((one) => read(one, id)));
    const place = rows.findIndex((row) => row !== undefined);
    known.set(id, ledgers[place]);
    return rows[place];
  }

  /** The partition of a new row. */
  function ofNew(id: string, user: string): Ledger {
    known.set(id, of(user));
    return of(user);
  }

  /** Acts where the row is; for one that does not exist anywhere: what is done there has no effect. */
  async function at<Reply>(id: string, act: (ledger: Ledger) => Promise<Reply>): Promise<Reply> {
    if (!known.has(id)) await get(id);
    return act(known.get(id) ?? of(''));
  }

  return { get, ofNew, at };
}

function partitionedPrompts({ of, all, everywhere, byId }: Router): PromptStore {
  const { ofNew, at, get } = byId(({ prompts }, key) => prompts.get(key));
  return {
    insert: (row) => ofNew(row.key, row.user).prompts.insert(row),
    insertBeforeLater: (row) => ofNew(row.key, row.user).prompts.insertBeforeLater(row),
    setState: (key, state) => at(key, ({ prompts }) => prompts.setState(key, state)),
    setPlan: (key, plan) => at(key, ({ prompts }) => prompts.setPlan(key, plan)),
    askCancel: (key, atMs) => at(key, ({ prompts }) => prompts.askCancel(key, atMs)),
    linkJob: (key, patch) => at(key, ({ prompts }) => prompts.linkJob(key, patch)),
    unlinkJob: (key, plan) => at(key, ({ prompts }) => prompts.unlinkJob(key, plan)),
    begin: (key, atMs) => at(key, ({ prompts }) => prompts.begin(key, atMs)),
    remove: (key) => at(key, ({ prompts }) => prompts.remove(key)),
    finish: (key, outcome) => at(key, ({ prompts }) => prompts.finish(key, outcome)),
    live: async (user) =>
      user === undefined
        ? merged(await all(({ prompts }) => prompts.live()))
        : of(user).prompts.live(user),
    liveKeys: (user) => of(user).prompts.liveKeys(user),
    find: (user, promptId) => of(user).prompts.find(user, promptId),
    findByJob: (user, jobId) => of(user).prompts.findByJob(user, jobId),
    hasJob: async (jobId) => (await all(({ prompts }) => prompts.hasJob(jobId))).includes(true),
    history: (user, page) => of(user).prompts.history(user, page),
    outlines: (user) => of(user).prompts.outlines(user),
    get,
    deleteHistory: (user, promptIds) => of(user).prompts.deleteHistory(user, promptIds),
    clearHistory: (user) => of(user).prompts.clearHistory(user),
    entries: (keys) => at(keys[0] ?? '', ({ prompts }) => prompts.entries(keys)),
    pruneHistory: (limits) => everywhere(({ prompts }) => prompts.pruneHistory(limits)),
    highestNumber: async () => Math.max(...(await all(({ prompts }) => prompts.highestNumber()))),
  };
}

function partitionedJobs({ of, list, byId }: Router): JobStore {
  const { ofNew, at, get } = byId(({ jobs }, id) => jobs.get(id));
  return {
    insert: (row, key) => ofNew(row.id, row.user).jobs.insert(row, key),
    update: (id, patch) => at(id, ({ jobs }) => jobs.update(id, patch)),
    remove: (id) => at(id, ({ jobs }) => jobs.remove(id)),
    get,
    list: (user, page) => of(user).jobs.list(user, page),
    expiredBy: (nowMs) => list(({ jobs }) => jobs.expiredBy(nowMs)),
    unfinished: async () =>
      (await list(({ jobs }) => jobs.unfinished())).toSorted(
        (a, b) => a.order - b.order || a.createdAtMs - b.createdAtMs,
      ),
  };
}

function partitionedAssets({ of, list, sum, byId }: Router): AssetStore {
  const { ofNew, at, get } = byId(({ assets }, id) => assets.get(id));
  return {
    insert: (row, claim) => ofNew(row.id, row.user).assets.insert(row, claim),
    remove: (id) => at(id, ({ assets }) => assets.remove(id)),
    get,
    byHash: (user, hash) => of(user).assets.byHash(user, hash),
    byFilePath: (user, filePath) => of(user).assets.byFilePath(user, filePath),
    outputPaths: (user, start) => of(user).assets.outputPaths(user, start),
    ofJob: (jobId) => list(({ assets }) => assets.ofJob(jobId)),
    expiredBy: (nowMs) => list(({ assets }) => assets.expiredBy(nowMs)),
    async oldest(limit) {
      const found = await list(({ assets }) => assets.oldest(limit));
      return found.toSorted((a, b) => a.createdAtMs - b.createdAtMs).slice(0, Math.max(0, limit));
    },
    // The same bytes of users in two partitions count twice.
    countByHash: (hash) => sum(({ assets }) => assets.countByHash(hash)),
    totalBytes: () => sum(({ assets }) => assets.totalBytes()),
  };
}

function partitionedCalls({ of, list, everywhere }: Router): CallStore {
  return {
    async add(rows) {
      const byLedger = new Map<Ledger, CallCount[]>();
      for (const row of rows) {
        const ledger = of(row.user);
        byLedger.set(ledger, [...(byLedger.get(ledger) ?? []), row]);
      }
      await Promise.all([...byLedger].map(([{ calls }, some]) => calls.add(some)));
    },
    list: async () => (await list(({ calls }) => calls.list())).toSorted(byClient),
    expire: (lastBeforeMs) => everywhere(({ calls }) => calls.expire(lastBeforeMs)),
  };
}

/** By their time; those of one list stay in their order, also when a clock was set back. */
function merged<Row extends { readonly createdAtMs: number }>(lists: readonly (readonly Row[])[]) {
  const timed = lists.flatMap((rows) => {
    let atMs = 0;
    return rows.map((row) => ({ row, atMs: (atMs = Math.max(atMs, row.createdAtMs)) }));
  });
  return timed.toSorted((a, b) => a.atMs - b.atMs).map(({ row }) => row);
}
