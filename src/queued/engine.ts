import path from 'node:path';
import { createBlobs } from '../engine/blobs.ts';
import type { Engine, EngineDeps } from '../engine/engine.ts';
import { type Stores, createAssetApi, openStores } from '../engine/stores.ts';
import type { JobRow, Ledger } from '../ledger/ledger.ts';
import type { RedisConnections } from '../redis.ts';
import { ok, refuse } from '../wire/jobs.ts';
import { completesWithin } from '../within.ts';
import { createBus } from './bus.ts';
import { type SharedBlobs, createSharedBlobs, createSharedNames } from './files.ts';
import { createFront } from './front.ts';
import { createKeys } from './keys.ts';
import { createLocalWorker } from './local-worker.ts';
import { createMirrors } from './mirrors.ts';
import { createRuns } from './runs.ts';
import { createTickets } from './tickets.ts';
import { createUpkeep, readsOf } from './upkeep.ts';
import type { TakeoverTimes } from './worker.ts';

const SILENCE_MS = 10_000;
const CLOSE_WITHIN_MS = 10_000;

export type QueuedDeps = Omit<EngineDeps, 'clock' | 'spoolDir'> & {
  readonly links: RedisConnections;
  /** Where this process, and no other, writes files before they are whole. */
  readonly spoolDir: string;
  readonly clock?: () => number;
  readonly takeover?: Partial<TakeoverTimes>;
};

/** What the halves of this process have in common. */
export type Shared = ReturnType<typeof openShared>;

/** A process that only runs jobs. */
export type QueuedWorker = { start(): void; close(): Promise<void> };

export function openQueuedWorker(deps: QueuedDeps): QueuedWorker {
  const shared = openShared(deps);
  const background = openBackground(deps, shared);
  return {
    start: () => background.start(),
    close: () => background.close(),
  };
}

function openBackground(deps: QueuedDeps, shared: Shared) {
  const { log, limits, ledger } = deps;
  const tickets = createTickets({ ...shared, log });
  const upkeep = createUpkeep({ ...limits, ...shared, ledger, tickets, log });
  const worker = createLocalWorker(deps, shared);
  const closeAll = async (): Promise<void> => {
    await worker?.close();
    await upkeep.close();
    await tickets.close();
  };
  return {
    tickets,
    start() {
      worker?.start();
      upkeep.start(async () => {});
    },
    async close() {
      // Commands wait for a Redis that is away; who stops does not.
      if (!(await completesWithin(CLOSE_WITHIN_MS, closeAll()))) {
        log.warn('redis is away: what runs here is left to be taken over');
      }
      shared.bus.close();
    },
  };
}

/** The embedded engine in several processes: this one takes jobs, and runs them where `concurrency` is not 0. */
export async function createQueuedEngine(deps: QueuedDeps): Promise<Engine> {
  const shared = openShared(deps);
  const { log, limits, ledger } = deps;
  const { redis, keys, bus, runs, stores, blobs } = shared;
  const mirrors = createMirrors({ redis, keys, bus, runs, log });
  const { tickets, ...background } = openBackground(deps, shared);
  return {
    ...createFront({
      ...shared,
      ...limits,
      ledger,
      nodes: deps.nodes,
      filesOf: stores.filesOf,
      mirrors,
      tickets,
    }),
    ...createSharedAssetApi({ stores, blobs, ledger }),
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    start: () => background.start(),
    async close() {
      mirrors.close();
      await background.close();
    },
  };
}

function openShared(deps: QueuedDeps) {
  const { links, ledger, dataDir, limits, log, nodes, clock = Date.now } = deps;
  // One that is silent while it owes an answer is given up, and asked again.
  const redis = links.connect({ socketTimeout: SILENCE_MS });
  const keys = createKeys(links);
  const blobs = createSharedBlobs({
    redis,
    keys,
    blobs: createBlobs(path.join(dataDir, 'blobs')),
    dataDir,
    ledger,
    clock,
  });
  const stores = openStores({
    ledger,
    nodes,
    blobs,
    clock,
    names: createSharedNames(redis, keys),
    alsoUsed: deps.alsoUsed,
    retentionMs: limits.retentionMs,
    isRead: async (id) => (await ledger.jobs.unfinished()).some((row) => reads(row, id)),
  });
  const bus = createBus(links.connect({ socketTimeout: SILENCE_MS }), log);
  return { redis, keys, bus, blobs, stores, runs: createRuns({ redis, keys }), clock };
}

function reads(row: JobRow, assetId: string): boolean {
  return readsOf(row).includes(assetId);
}

/** Bytes known by their hash may be on their way out in another process. */
function createSharedAssetApi({
  stores: { assets },
  blobs,
  ledger,
}: {
  readonly stores: Stores;
  readonly blobs: SharedBlobs;
  readonly ledger: Ledger;
}): ReturnType<typeof createAssetApi> {
  const api = createAssetApi(assets);
  const isThere = async (hash: string): Promise<boolean> => {
    const handle = await blobs.open(hash);
    await handle?.close();
    return handle !== undefined;
  };
  return {
    ...api,
    async assetFromHash(caller, request) {
      const made = await api.assetFromHash(caller, request);
      if (!made.ok || (await isThere(request.hash))) return made;
      await ledger.assets.remove(made.value.id);
      return refuse(404, 'blob_not_found', 'no bytes with this hash');
    },
  };
}
