import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import type { Logger } from '../telemetry.ts';
import { type JobApi, ok } from '../wire/jobs.ts';
import { createAssets } from './assets.ts';
import { createBlobs } from './blobs.ts';
import { createDispatcher, type Dispatcher } from './dispatch.ts';
import { createJobReader } from './job-reader.ts';
import { type LiveJob, showJob } from './live.ts';
import { createLocks } from './locks.ts';
import { createOutputs } from './outputs.ts';
import type { WorkerSetup } from './protocol.ts';
import { recoverJobs } from './recover.ts';
import { type ResolveDeps, resolveFiles } from './resolve.ts';
import { removeOrphanBlobs, sweep } from './retention.ts';
import { createHolds } from './holds.ts';
import { acceptJob } from './submit.ts';
import { createWorkerSlot } from './worker-slot.ts';

export type EngineLimits = {
  /** Jobs that run at the same time. */
  readonly concurrency: number;
  /** Jobs that may wait; more are refused with `queue_full`. */
  readonly maxQueued: number;
  readonly jobTimeMs: number;
  readonly jobMemoryBytes: number;
  /** How long a job may take to notice that it is to stop, before its worker is ended. */
  readonly stopGraceMs: number;
  /** Pixels each worker keeps of its users' previous prompts. */
  readonly cacheBytes: number;
  /** How long a finished job and its outputs are kept. */
  readonly retentionMs: number;
  /** Bytes of assets beyond which the oldest go. */
  readonly assetBudgetBytes: number;
  readonly sweepIntervalMs: number;
};

export const DEFAULT_LIMITS: EngineLimits = {
  concurrency: 1,
  maxQueued: 1000,
  jobTimeMs: 30 * 60_000,
  jobMemoryBytes: 4 * 2 ** 30,
  stopGraceMs: 10_000,
  cacheBytes: 2 ** 30,
  retentionMs: 7 * 24 * 60 * 60_000,
  assetBudgetBytes: 50 * 2 ** 30,
  sweepIntervalMs: 60_000,
};

export type EngineDeps = {
  readonly ledger: Ledger;
  readonly dataDir: string;
  /** What submissions are validated against; the workers run the classes of `nodesModule`. */
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** URL of a compiled module that exports the same classes as `ALL_NODES`; this server's library by default. */
  readonly nodesModule?: string;
  readonly log: Logger;
  readonly clock?: () => number;
  readonly limits: EngineLimits;
};

/** The embedded v2 service. */
export interface Engine extends JobApi {
  /** Begins to run queued jobs, those of an earlier process included. */
  start(): void;
  /** Stops in good order: running jobs are recorded as queued, the next boot runs them again. */
  close(): Promise<void>;
}

/** Opens the engine over its ledger and files and takes up the jobs an earlier process left unfinished. */
export async function createEngine(deps: EngineDeps): Promise<Engine> {
  const { ledger, limits, log, clock = Date.now } = deps;
  const spoolDir = path.join(deps.dataDir, 'spool');
  await rm(spoolDir, { recursive: true, force: true });
  await mkdir(spoolDir, { recursive: true });

  const locks = createLocks();
  const blobs = createBlobs(path.join(deps.dataDir, 'blobs'));
  const isRead = (assetId: string): boolean => [...dispatcher.jobs()].some((job) => needs(job, assetId));
  const assets = createAssets({ ledger, blobs, locks, clock, isRead });
  const outputs = createOutputs({ ledger, blobs, locks, clock });
  const holds = createHolds({ ledger, locks, clock, retentionMs: limits.retentionMs });
  const filesOf = (user: string): ResolveDeps => ({
    nodes: deps.nodes,
    byId: (id) => assets.find(user, id),
    byPath: (filePath) => ledger.assets.byFilePath(user, filePath),
    pathOf: blobs.pathOf,
  });
  const setup: WorkerSetup = {
    nodesModule: deps.nodesModule ?? libraryUrl(),
    spoolDir: path.resolve(spoolDir),
    cacheBytes: limits.cacheBytes,
  };
  const dispatcher: Dispatcher = createDispatcher({
    ...{ ledger, locks, log, clock },
    maxQueued: limits.maxQueued,
    retentionMs: limits.retentionMs,
    slots: Array.from({ length: limits.concurrency }, () => createWorkerSlot(setup)),
    onEnd: (job) => holds.extend(job.outputs, job),
    runner: {
      clock,
      timeLimitMs: limits.jobTimeMs,
      memoryLimitBytes: limits.jobMemoryBytes,
      stopGraceMs: limits.stopGraceMs,
      resolve: (job) => resolveFiles(job, filesOf(job.user)),
      answer: createAnswer({ outputs, holds }),
    },
  });
  for (const job of await recoverJobs({ ledger, assets, clock, retentionMs: limits.retentionMs })) dispatcher.add(job);

  const upkeep = { ledger, assets, blobs, locks, clock, isRead, assetBudgetBytes: limits.assetBudgetBytes };
  const retention = { ...upkeep, isLive: (id: string) => dispatcher.find(id) !== undefined };
  const keeper = createKeeper(() => sweep(retention), { log, everyMs: limits.sweepIntervalMs });
  const accept = { ledger, clock, filesOf, nodes: deps.nodes, retentionMs: limits.retentionMs, ...dispatcher };

  return {
    ...createJobReader({ ledger, clock, find: dispatcher.find }),
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, accept);
      if (!accepted.ok) return accepted;
      dispatcher.add(accepted.value);
      return ok({ ...showJob(accepted.value, clock()), x_workflow: accepted.value.workflow });
    },
    async cancel(caller, jobId) {
      const job = dispatcher.find(jobId);
      if (job?.user === caller.user) await dispatcher.cancel(job);
      return await this.get(caller, jobId);
    },
    createAsset: ({ user }, upload) => assets.create(user, upload),
    assetFromHash: ({ user }, request) => assets.fromHash(user, request),
    hasBlob: ({ user }, hash) => assets.hasBlob(user, hash),
    asset: ({ user }, id) => assets.get(user, id),
    deleteAsset: ({ user }, id) => assets.remove(user, id),
    content: ({ user }, id, range) => assets.content(user, id, range),
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    start() {
      dispatcher.start();
      keeper.start(() => removeOrphanBlobs(retention));
    },
    async close() {
      await keeper.close();
      await dispatcher.close();
    },
  };
}
