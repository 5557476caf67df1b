import path from 'node:path';
import { createAnswer } from '../engine/answers.ts';
import { createBlobs } from '../engine/blobs.ts';
import type { Engine, EngineDeps } from '../engine/engine.ts';
import type { EngineLimits } from '../engine/limits.ts';
import { resolveFiles } from '../engine/resolve.ts';
import { type Stores, createAssetApi, libraryUrl, openStores } from '../engine/stores.ts';
import { createWorkerSlot } from '../engine/worker-slot.ts';
import type { JobRow, Ledger } from '../ledger/ledger.ts';
import type { RedisLinks } from '../redis.ts';
import type { Outputs } from '../engine/outputs.ts';
import { ok, refuse } from '../wire/jobs.ts';
import { createBus } from './bus.ts';
import { type Errands, createErrands } from './errand.ts';
import { type SharedBlobs, createSharedBlobs, createSharedNames } from './files.ts';
import { createFront } from './front.ts';
import { createKeys } from './keys.ts';
import { createMirrors } from './mirrors.ts';
import { type Runs, createRuns } from './runs.ts';
import { createTickets } from './tickets.ts';
import { createUpkeep, readsOf } from './upkeep.ts';
import { type QueueWorker, TAKEOVER, type TakeoverTimes, createQueueWorker } from './worker.ts';

const SILENCE_MS = 10_000;

export type QueuedDeps = Omit<EngineDeps, 'clock' | 'spoolDir'> & {
  readonly links: RedisLinks;
  /** Where this process, and no other, writes files before they are whole. */
  readonly spoolDir: string;
  readonly clock?: () => number;
  readonly takeover?: Partial<TakeoverTimes>;
};

type Opened = ReturnType<typeof openShared>;

/** A process that only runs jobs. */
export type QueuedWorker = { start(): void; close(): Promise<void> };

export function openQueuedWorker(deps: QueuedDeps): QueuedWorker {
  const shared = openShared(deps);
  const { worker, upkeep, tickets } = openBackground(deps, shared);
  return {
    start() {
      worker?.start();
      upkeep.start(async () => {});
    },
    async close() {
      await upkeep.close();
      await worker?.close();
      await tickets.close();
      shared.bus.close();
    },
  };
}

function openBackground(deps: QueuedDeps, shared: Opened) {
  const { log, limits, ledger } = deps;
  const tickets = createTickets({ ...shared, log });
  const upkeep = createUpkeep({ ...limits, ...shared, ledger, tickets, log });
  return { tickets, upkeep, worker: createWorkerHalf(deps, shared) };
}

/** The embedded engine in several processes: this one takes jobs, and runs them where `concurrency` is not 0. */
export async function createQueuedEngine(deps: QueuedDeps): Promise<Engine> {
  const shared = openShared(deps);
  const { log, limits, ledger } = deps;
  const { redis, keys, bus, runs, stores, blobs } = shared;
  const mirrors = createMirrors({ redis, keys, bus, runs, log });
  const { tickets, upkeep, worker } = openBackground(deps, shared);
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
    start() {
      worker?.start();
      upkeep.start(async () => {});
    },
    async close() {
      await upkeep.close();
      await worker?.close();
      mirrors.close();
      await tickets.close();
      bus.close();
    },
  };
}

function openShared(deps: QueuedDeps) {
  const { links, ledger, dataDir, limits, log, nodes, clock = Date.now } = deps;
  // One that is silent while it owes an answer is given up, and asked again.
  const redis = links.connect({ socketTimeout: SILENCE_MS });
  const keys = createKeys(links.prefix);
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
    retentionMs: limits.retentionMs,
    isRead: async (id) => (await ledger.jobs.unfinished()).some((row) => reads(row, id)),
  });
  const bus = createBus(links.connect({ socketTimeout: SILENCE_MS }), log);
  return { redis, keys, bus, blobs, stores, runs: createRuns({ redis, keys }), clock };
}

function reads(row: JobRow, assetId: string): boolean {
  return readsOf(row).includes(assetId);
}

type Half = QueueWorker | undefined;

function createWorkerHalf(deps: QueuedDeps, shared: Opened): Half {
  const { ledger, limits, log, nodesModule = libraryUrl() } = deps;
  const { stores, runs, clock } = shared;
  if (limits.concurrency === 0) return undefined;
  const spoolDir = path.resolve(deps.spoolDir);
  const setup = { nodesModule, spoolDir, cacheBytes: limits.cacheBytes };
  const slots = Array.from({ length: limits.concurrency }, () => createWorkerSlot(setup));
  const outputs = fenced(stores, { ledger, runs, held: (id) => errands.held(id) });
  const errands: Errands = createErrands({
    ...stores,
    ledger,
    runs,
    slots,
    clock,
    log,
    retentionMs: limits.retentionMs,
    runner: {
      ...runnerLimits(limits),
      clock,
      log,
      resolve: (job) => resolveFiles(job, stores.filesOf(job.user)),
      answer: createAnswer({ outputs, holds: stores.holds }),
    },
  });
  const { concurrency } = limits;
  const takeover = { ...TAKEOVER, ...deps.takeover };
  const worker = createQueueWorker({ ...shared, errands, concurrency, takeover, log });
  return {
    start() {
      for (const slot of slots) slot.warm();
      worker.start();
    },
    async close() {
      await worker.close();
      await Promise.all(slots.map((slot) => slot.kill()));
    },
  };
}

function runnerLimits({ jobTimeMs, jobMemoryBytes, stopGraceMs }: EngineLimits) {
  return { timeLimitMs: jobTimeMs, memoryLimitBytes: jobMemoryBytes, stopGraceMs };
}

type Fence = {
  readonly ledger: Ledger;
  readonly runs: Pick<Runs, 'holds'>;
  readonly held: Errands['held'];
};

/** A file is made under the fence of its job: what came too late is taken back. */
function fenced({ outputs, assets }: Stores, { ledger, runs, held }: Fence): Outputs {
  const isHeld = async (jobId: string): Promise<boolean> => {
    const ours = held(jobId);
    return ours !== undefined && (await runs.holds(ours));
  };
  return {
    ...outputs,
    async commit(made) {
      if (!(await isHeld(made.jobId))) throw new Error('this job was taken over');
      const output = await outputs.commit(made);
      if (await isHeld(made.jobId)) return output;
      const row = await ledger.assets.get(output.id);
      if (row) await assets.discard(row);
      throw new Error('this job was taken over');
    },
  };
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
