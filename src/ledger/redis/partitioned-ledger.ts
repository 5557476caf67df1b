import { LRUCache } from 'lru-cache';
import type { CallCount, JobRow, Ledger, PromptRow } from '../ledger.ts';

/** So many ids of each kind are remembered with the partition that has their row. */
const MAX_REMEMBERED = 100_000;

/** The ledgers that one is made of, and which of them has a user. */
type Partitions = {
  readonly ledgers: readonly Ledger[];
  readonly of: (user: string) => Ledger;
};

/**
 * One ledger of several, each of which has its share of the users: in a Redis Cluster a script
 * touches the keys of one partition only. Lists of all users are read from all partitions.
 */
export function partitionedLedger(
  ledgers: readonly Ledger[],
  { indexOf, close }: { readonly indexOf: (user: string) => number; close: () => Promise<void> },
): Ledger {
  const [first] = ledgers;
  if (!first) throw new Error('a ledger has no partitions');
  const partitions: Partitions = { ledgers, of: (user) => ledgers[indexOf(user)] ?? first };
  return {
    prompts: promptsOf(partitions),
    files: filesOf(partitions),
    jobs: jobsOf(partitions),
    assets: assetsOf(partitions),
    keys: {
      ofAsset: (user, key) => partitions.of(user).keys.ofAsset(user, key),
      expire: (beforeMs) => inAll(ledgers, ({ keys }) => keys.expire(beforeMs)),
    },
    settings: {
      all: (user) => partitions.of(user).settings.all(user),
      merge: (user, settings) => partitions.of(user).settings.merge(user, settings),
    },
    replays: replaysOf(partitions),
    modelCalls: modelCallsOf(partitions),
    calls: callsOf(partitions),
    committed: () => inAll(ledgers, (ledger) => ledger.committed()),
    synced: () => inAll(ledgers, (ledger) => ledger.synced()),
    close,
  };
}

async function inAll(
  ledgers: readonly Ledger[],
  act: (ledger: Ledger) => Promise<void>,
): Promise<void> {
  await Promise.all(ledgers.map(act));
}

async function listAll<Row>(
  { ledgers }: Partitions,
  list: (ledger: Ledger) => Promise<readonly Row[]>,
): Promise<Row[]> {
  return (await Promise.all(ledgers.map(list))).flat();
}

/** By their time; those of one list stay in their order, also when a clock was set back. */
function merged<Row extends { readonly createdAtMs: number }>(lists: readonly (readonly Row[])[]) {
  const timed = lists.flatMap((rows) => {
    let atMs = 0;
    return rows.map((row) => ({ row, atMs: (atMs = Math.max(atMs, row.createdAtMs)) }));
  });
  return timed.toSorted((a, b) => a.atMs - b.atMs).map(({ row }) => row);
}

async function sum(
  { ledgers }: Partitions,
  count: (ledger: Ledger) => Promise<number>,
): Promise<number> {
  const counts = await Promise.all(ledgers.map(count));
  return counts.reduce((total, one) => total + one, 0);
}

/** Finds the partition of a row by its id: callers do not always know its user. */
function createLocator<Row>(
  { ledgers, of }: Partitions,
  read: (ledger: Ledger, id: string) => Promise<Row | undefined>,
) {
  const known = new LRUCache<string, Ledger>({ max: MAX_REMEMBERED });
  async function find(id: string): Promise<{ ledger: Ledger; row: Row } | undefined> {
    const rows = await Promise.all(ledgers.map((ledger) => read(ledger, id)));
    for (const [i, row] of rows.entries()) {
      const ledger = ledgers[i];
      if (row === undefined || !ledger) continue;
      known.set(id, ledger);
      return { ledger, row };
    }
    return undefined;
  }
  return {
    /** The partition of this user; from now on the row is found there. */
    remember(id: string, user: string): Ledger {
      const ledger = of(user);
      known.set(id, ledger);
      return ledger;
    },
    /**
     * Acts where the row is, at once if that is known; for a row that does not exist anywhere: what
     * is done there has no effect.
     */
    at<T>(id: string, act: (ledger: Ledger) => Promise<T>): Promise<T> {
      const ledger = known.get(id);
      return ledger ? act(ledger) : find(id).then((found) => act(found?.ledger ?? of('')));
    },
    async get(id: string): Promise<Row | undefined> {
      const ledger = known.get(id);
      return ledger ? await read(ledger, id) : (await find(id))?.row;
    },
  };
}

function promptsOf(partitions: Partitions): Ledger['prompts'] {
  const { ledgers, of } = partitions;
  const rows = createLocator<PromptRow>(partitions, ({ prompts }, key) => prompts.get(key));
  const at = <T>(key: string, act: (prompts: Ledger['prompts']) => Promise<T>): Promise<T> =>
    rows.at(key, ({ prompts }) => act(prompts));
  return {
    insert: (row) => rows.remember(row.key, row.user).prompts.insert(row),
    insertBeforeLater: (row) => rows.remember(row.key, row.user).prompts.insertBeforeLater(row),
    setState: (key, state) => at(key, (prompts) => prompts.setState(key, state)),
    setIntent: (key, intent) => at(key, (prompts) => prompts.setIntent(key, intent)),
    askCancel: (key, atMs) => at(key, (prompts) => prompts.askCancel(key, atMs)),
    linkJob: (key, ...more) => at(key, (prompts) => prompts.linkJob(key, ...more)),
    unlinkJob: (key, intent) => at(key, (prompts) => prompts.unlinkJob(key, intent)),
    begin: (key, ...more) => at(key, (prompts) => prompts.begin(key, ...more)),
    remove: (key) => at(key, (prompts) => prompts.remove(key)),
    finish: (key, ...more) => at(key, (prompts) => prompts.finish(key, ...more)),
    get: (key) => rows.get(key),
    async live(user) {
      if (user !== undefined) return of(user).prompts.live(user);
      return merged(await Promise.all(ledgers.map(({ prompts }) => prompts.live())));
    },
    liveKeys: (user) => of(user).prompts.liveKeys(user),
    find: (user, promptId) => of(user).prompts.find(user, promptId),
    findByJob: (user, jobId) => of(user).prompts.findByJob(user, jobId),
    async hasJob(jobId) {
      const found = await Promise.all(ledgers.map(({ prompts }) => prompts.hasJob(jobId)));
      return found.includes(true);
    },
    history: (user, page) => of(user).prompts.history(user, page),
    outlines: (user) => of(user).prompts.outlines(user),
    deleteHistory: (user, ids) => of(user).prompts.deleteHistory(user, ids),
    clearHistory: (user) => of(user).prompts.clearHistory(user),
    entries: (keys) => at(keys[0] ?? '', (prompts) => prompts.entries(keys)),
    pruneHistory: (limits) => inAll(ledgers, ({ prompts }) => prompts.pruneHistory(limits)),
    async highestNumber() {
      return Math.max(
        ...(await Promise.all(ledgers.map(({ prompts }) => prompts.highestNumber()))),
      );
    },
  };
}

function filesOf({ of }: Partitions): Ledger['files'] {
  return {
    put: (row, ...more) => of(row.user).files.put(row, ...more),
    claim: (row, ...more) => of(row.user).files.claim(row, ...more),
    get: (user, name) => of(user).files.get(user, name),
    byAsset: (user, assetId) => of(user).files.byAsset(user, assetId),
    newestNamed: (user, name) => of(user).files.newestNamed(user, name),
    list: (user, type) => of(user).files.list(user, type),
    remove: (user, name) => of(user).files.remove(user, name),
  };
}

function jobsOf(partitions: Partitions): Ledger['jobs'] {
  const rows = createLocator<JobRow>(partitions, ({ jobs }, id) => jobs.get(id));
  return {
    insert: (row, ...more) => rows.remember(row.id, row.user).jobs.insert(row, ...more),
    update: (id, ...more) => rows.at(id, ({ jobs }) => jobs.update(id, ...more)),
    get: (id) => rows.get(id),
    list: (user, page) => partitions.of(user).jobs.list(user, page),
    async unfinished() {
      const found = await listAll(partitions, ({ jobs }) => jobs.unfinished());
      return found.toSorted((a, b) => a.order - b.order || a.createdAtMs - b.createdAtMs);
    },
    expiredBy: (nowMs) => listAll(partitions, ({ jobs }) => jobs.expiredBy(nowMs)),
    remove: (id) => rows.at(id, ({ jobs }) => jobs.remove(id)),
  };
}

function assetsOf(partitions: Partitions): Ledger['assets'] {
  const { of } = partitions;
  const rows = createLocator(partitions, ({ assets }, id: string) => assets.get(id));
  return {
    insert: (row, ...more) => rows.remember(row.id, row.user).assets.insert(row, ...more),
    get: (id) => rows.get(id),
    byHash: (user, hash) => of(user).assets.byHash(user, hash),
    byFilePath: (user, filePath) => of(user).assets.byFilePath(user, filePath),
    ofJob: (jobId) => listAll(partitions, ({ assets }) => assets.ofJob(jobId)),
    outputPaths: (user, prefix) => of(user).assets.outputPaths(user, prefix),
    expiredBy: (nowMs) => listAll(partitions, ({ assets }) => assets.expiredBy(nowMs)),
    async oldest(limit) {
      const found = await listAll(partitions, ({ assets }) => assets.oldest(limit));
      return found.toSorted((a, b) => a.createdAtMs - b.createdAtMs).slice(0, Math.max(0, limit));
    },
    remove: (id) => rows.at(id, ({ assets }) => assets.remove(id)),
    countByHash: (hash) => sum(partitions, ({ assets }) => assets.countByHash(hash)),
    // The same bytes of users in two partitions count twice.
    totalBytes: () => sum(partitions, ({ assets }) => assets.totalBytes()),
  };
}

function replaysOf(partitions: Partitions): Ledger['replays'] {
  const { ledgers, of } = partitions;
  return {
    reserve: (row, freeBeforeMs) => of(row.scope).replays.reserve(row, freeBeforeMs),
    record: (holder, answer) => of(holder.scope).replays.record(holder, answer),
    consume: (holder, atMs) => of(holder.scope).replays.consume(holder, atMs),
    release: (holder) => of(holder.scope).replays.release(holder),
    expire: (beforeMs) => inAll(ledgers, ({ replays }) => replays.expire(beforeMs)),
    recordedBytes: () => sum(partitions, ({ replays }) => replays.recordedBytes()),
  };
}

/** In the partition of their request, as later calls name nothing else. */
function modelCallsOf(partitions: Partitions): Ledger['modelCalls'] {
  const { ledgers, of } = partitions;
  return {
    insert: (row) => of(row.requestId).modelCalls.insert(row),
    amend: (requestId, patch) => of(requestId).modelCalls.amend(requestId, patch),
    get: (requestId) => of(requestId).modelCalls.get(requestId),
    chargedCents: (workspace) =>
      sum(partitions, ({ modelCalls }) => modelCalls.chargedCents(workspace)),
    expire: (beforeMs) => inAll(ledgers, ({ modelCalls }) => modelCalls.expire(beforeMs)),
  };
}

function callsOf(partitions: Partitions): Ledger['calls'] {
  const { ledgers, of } = partitions;
  return {
    async add(rows) {
      const byLedger = new Map<Ledger, CallCount[]>();
      for (const row of rows) {
        const ledger = of(row.user);
        byLedger.set(ledger, [...(byLedger.get(ledger) ?? []), row]);
      }
      await Promise.all([...byLedger].map(([{ calls }, some]) => calls.add(some)));
    },
    async list() {
      const found = await listAll(partitions, ({ calls }) => calls.list());
      return found.toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
    },
    expire: (beforeMs) => inAll(ledgers, ({ calls }) => calls.expire(beforeMs)),
  };
}

function orderOf({ user, agent, route, clientId }: CallCount): string {
  return [user, agent, route, clientId].join('\0');
}
