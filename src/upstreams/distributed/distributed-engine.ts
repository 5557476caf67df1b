import path from 'node:path';
import { createBlobs } from '../blobs.ts';
import type { Engine, EngineOptions } from '../embedded/embedded-engine.ts';
import { type JobFiles, createAssetApi, createJobFiles } from '../assets/job-files.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { RedisConnections } from '../../lib/redis.ts';
import { ok, refuse } from '../../protocol/job-api.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import { createPubSub } from './pubsub.ts';
import { type SharedBlobs, createSharedBlobs, createSharedOutputNames } from './shared-blobs.ts';
import { createJobApi } from './job-api.ts';
import { createQueueKeys } from './redis-keys.ts';
import { createLocalWorker } from './local-worker.ts';
import { createEventMirrors } from './event-mirror.ts';
import { createRunStateStore } from './run-state.ts';
import { createTicketQueue } from './ticket-queue.ts';
import { createJanitor, inputAssetIdsOf } from './janitor.ts';
import type { TakeoverTimes } from './queue-worker.ts';

const SOCKET_TIMEOUT_MS = 10_000;
const CLOSE_WITHIN_MS = 10_000;

export type DistributedEngineOptions = Omit<EngineOptions, 'clock' | 'spoolDir'> & {
  readonly links: RedisConnections;
  /** A folder where only this process writes incomplete files. */
  readonly spoolDir: string;
  readonly clock?: () => number;
  readonly takeover?: Partial<TakeoverTimes>;
};

/** The services that the request side and the worker side of this process share. */
export type SharedServices = ReturnType<typeof openSharedServices>;

/** A process that only runs jobs. */
export type WorkerProcess = { start(): void; close(): Promise<void> };

export function openWorkerProcess(deps: DistributedEngineOptions): WorkerProcess {
  const shared = openSharedServices(deps);
  const background = openBackgroundWork(deps, shared);
  return {
    start: () => background.start(),
    close: () => background.close(),
  };
}

function openBackgroundWork(deps: DistributedEngineOptions, shared: SharedServices) {
  const { log, limits, ledger } = deps;
  const ticketQueue = createTicketQueue({ ...shared, log });
  const janitor = createJanitor({ ...limits, ...shared, ledger, ticketQueue, log });
  const worker = createLocalWorker(deps, shared);
  const closeAll = async (): Promise<void> => {
    await worker?.close();
    await janitor.close();
    await ticketQueue.close();
  };
  return {
    ticketQueue,
    start() {
      worker?.start();
      janitor.start(async () => {});
    },
    async close() {
      // Commands wait for an unavailable Redis; closing does not.
      if (!(await completesWithin(CLOSE_WITHIN_MS, closeAll()))) {
        log.warn(
          { event: 'worker.close_timed_out' },
          'Redis is unavailable: other processes take over the running jobs',
        );
      }
      shared.pubsub.close();
    },
  };
}

/**
 * The embedded engine in several processes: this one accepts jobs, and runs them when `concurrency`
 * is not 0.
 */
export async function createDistributedEngine(deps: DistributedEngineOptions): Promise<Engine> {
  const shared = openSharedServices(deps);
  const { log, limits, ledger } = deps;
  const { redis, keys, pubsub, runState, jobFiles, blobs } = shared;
  const eventMirrors = createEventMirrors({ redis, keys, pubsub, runState, log });
  const { ticketQueue, ...background } = openBackgroundWork(deps, shared);
  return {
    ...createJobApi({
      ...shared,
      ...limits,
      ledger,
      nodes: deps.nodes,
      fileLookupOf: jobFiles.fileLookupOf,
      eventMirrors,
      ticketQueue,
    }),
    ...createSharedAssetApi({ jobFiles, blobs, ledger }),
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    start: () => background.start(),
    async close() {
      eventMirrors.close();
      await background.close();
    },
  };
}

function openSharedServices(deps: DistributedEngineOptions) {
  const { links, ledger, dataDir, limits, log, nodes, clock = Date.now } = deps;
  // A connection that stays silent with commands pending is closed and opened again.
  const redis = links.connect({ socketTimeout: SOCKET_TIMEOUT_MS });
  const keys = createQueueKeys(links);
  const blobs = createSharedBlobs({
    redis,
    keys,
    blobs: createBlobs(path.join(dataDir, 'blobs')),
    dataDir,
    ledger,
    clock,
  });
  const jobFiles = createJobFiles({
    ledger,
    nodes,
    blobs,
    clock,
    names: createSharedOutputNames(redis, keys),
    highestUsedElsewhere: deps.highestUsedElsewhere,
    retentionMs: limits.retentionMs,
    isInUse: async (id) => (await ledger.jobs.unfinished()).some((row) => readsAsset(row, id)),
  });
  const pubsub = createPubSub(links.connect({ socketTimeout: SOCKET_TIMEOUT_MS }), log);
  return {
    redis,
    keys,
    pubsub,
    blobs,
    jobFiles,
    runState: createRunStateStore({ redis, keys }),
    clock,
  };
}

function readsAsset(row: JobRow, assetId: string): boolean {
  return inputAssetIdsOf(row).includes(assetId);
}

/** Another process may be removing the bytes of a known hash. */
function createSharedAssetApi({
  jobFiles: { assets },
  blobs,
  ledger,
}: {
  readonly jobFiles: JobFiles;
  readonly blobs: SharedBlobs;
  readonly ledger: Ledger;
}): ReturnType<typeof createAssetApi> {
  const api = createAssetApi(assets);
  const hasBytes = async (hash: string): Promise<boolean> => {
    const handle = await blobs.open(hash);
    await handle?.close();
    return handle !== undefined;
  };
  return {
    ...api,
    async assetFromHash(caller, request) {
      const created = await api.assetFromHash(caller, request);
      if (!created.ok || (await hasBytes(request.hash))) return created;
      await ledger.assets.remove(created.value.id);
      return refuse(404, 'blob_not_found', 'no bytes with this hash');
    },
  };
}
