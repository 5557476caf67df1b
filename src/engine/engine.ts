import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import type { Logger } from '../telemetry.ts';
import { type JobApi, ok } from '../wire/jobs.ts';
import { createAnswer } from './answers.ts';
import { createBlobs } from './blobs.ts';
import { createDispatcher, type Dispatcher } from './dispatch.ts';
import { createJobReader } from './job-reader.ts';
import { createKeeper } from './keeper.ts';
import type { EngineLimits } from './limits.ts';
import { type LiveJob, showJob } from './live.ts';
import { type OutputDeps, createNames } from './outputs.ts';
import type { WorkerSetup } from './protocol.ts';
import { recoverJobs } from './recover.ts';
import { createRegistry } from './registry.ts';
import { resolveFiles } from './resolve.ts';
import { importedBytes, sweepAlone } from './retention.ts';
import { type Stores, createAssetApi, libraryUrl, openStores } from './stores.ts';
import { acceptJob } from './submit.ts';
import { createWorkerSlot } from './worker-slot.ts';

export type EngineDeps = {
  readonly ledger: Ledger;
  readonly dataDir: string;
  /** This process's own and empty; else a folder of the data directory is emptied. */
  readonly spoolDir?: string;
  /** What submissions are validated against; the workers run the classes of `nodesModule`. */
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** URL of a compiled module that exports the same classes as `ALL_NODES`; this server's library by default. */
  readonly nodesModule?: string;
  readonly log: Logger;
  readonly clock?: () => number;
  readonly limits: EngineLimits;
  readonly alsoUsed?: OutputDeps['alsoUsed'];
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
  const { ledger, limits, clock = Date.now } = deps;
  const live = new Map<string, LiveJob>();
  const stores = storesOf({ ...deps, clock, live });
  const spoolDir = path.resolve(deps.spoolDir ?? (await emptySpool(deps.dataDir)));
  const dispatcher = openDispatcher({ ...deps, clock, live }, stores, spoolDir);
  const unfinished = await recoverJobs({
    ledger,
    clock,
    assets: stores.assets,
    retentionMs: limits.retentionMs,
  });
  for (const job of unfinished) dispatcher.add(job);
  const upkeep = createUpkeep({ ...deps, clock, live }, stores);
  const keeper = createKeeper(upkeep.chore, { log: deps.log, everyMs: limits.sweepIntervalMs });
  return {
    ...createJobApi({ ...deps, clock, live }, stores, dispatcher),
    ...createAssetApi(stores.assets),
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    start() {
      dispatcher.start();
      keeper.start(upkeep.first);
    },
    async close() {
      await keeper.close();
      await dispatcher.close();
    },
  };
}

type Opened = EngineDeps & { readonly live: Map<string, LiveJob>; readonly clock: () => number };

function storesOf(deps: Opened): Stores {
  const { live, dataDir, limits } = deps;
  const blobs = createBlobs(path.join(dataDir, 'blobs'));
  const { retentionMs } = limits;
  return openStores({ ...deps, blobs, names: createNames(), isRead: readBy(live), retentionMs });
}

function openDispatcher(deps: Opened, stores: Stores, spoolDir: string): Dispatcher {
  const { ledger, limits, log, clock, live, nodesModule = libraryUrl() } = deps;
  const { locks } = stores;
  const { retentionMs } = limits;
  const registry = createRegistry({ ledger, clock, log, live, locks, retentionMs });
  const setup: WorkerSetup = { nodesModule, spoolDir, cacheBytes: limits.cacheBytes };
  return createDispatcher({
    log,
    clock,
    live,
    registry,
    maxQueued: limits.maxQueued,
    slots: Array.from({ length: limits.concurrency }, () => createWorkerSlot(setup)),
    onEnd: (job) => stores.holds.extend(job),
    runner: {
      clock,
      log,
      timeLimitMs: limits.jobTimeMs,
      memoryLimitBytes: limits.jobMemoryBytes,
      stopGraceMs: limits.stopGraceMs,
      nodes: deps.nodes,
      resolve: (job) => resolveFiles(job, stores.filesOf(job.user)),
      answer: createAnswer({ ...stores, begin: (job) => registry.begin(job) }),
    },
  });
}

function createUpkeep(
  deps: Opened,
  stores: Stores,
): { readonly [K in 'chore' | 'first']: () => Promise<void> } {
  const { ledger, limits, live, clock, log } = deps;
  const isLive = (jobId: string): boolean => live.has(jobId);
  const isRead = readBy(live);
  const { assetBudgetBytes } = limits;
  const retention = { ...stores, ledger, clock, isLive, isRead, assetBudgetBytes };
  return {
    chore: () => sweepAlone(retention),
    async first() {
      const bytes = await importedBytes(retention);
      if (bytes >= assetBudgetBytes) log.warn({ bytes }, CROWDED);
    },
  };
}

const CROWDED =
  'imported files alone use up --disk-budget: new results are removed as soon as their jobs are over';

type JobHalf = Pick<
  JobApi,
  'submit' | 'recover' | 'get' | 'workflow' | 'events' | 'cancel' | 'list'
>;

function createJobApi(deps: Opened, { filesOf }: Stores, dispatcher: Dispatcher): JobHalf {
  const { ledger, clock, live, limits } = deps;
  const reader = createJobReader({ ledger, clock, find: (id) => live.get(id) });
  const { reserve, lastPlace } = dispatcher;
  const accept = {
    ledger,
    clock,
    filesOf,
    nodes: deps.nodes,
    retentionMs: limits.retentionMs,
    reserve,
    lastPlace,
  };
  return {
    ...reader,
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, accept);
      if (!accepted.ok) return accepted;
      const job = accepted.value;
      dispatcher.add(job);
      return ok({ ...showJob(job, clock()), x_workflow: job.workflow });
    },
    async recover(caller, { metadata }) {
      const page = await reader.list(caller, { limit: 1, ...(metadata && { metadata }) });
      return page.ok
        ? ok({ job: page.value.jobs[0] ?? null, isCertain: true, isListed: true })
        : page;
    },
    async cancel(caller, jobId) {
      const job = live.get(jobId);
      if (job?.user === caller.user) await dispatcher.cancel(job);
      return await reader.get(caller, jobId);
    },
  };
}

/** Whatever lies there belonged to a process that is dead. */
async function emptySpool(dataDir: string): Promise<string> {
  const spoolDir = path.join(dataDir, 'spool');
  await rm(spoolDir, { recursive: true, force: true });
  await mkdir(spoolDir, { recursive: true });
  return spoolDir;
}

function readBy(live: ReadonlyMap<string, LiveJob>): (assetId: string) => boolean {
  return (assetId) => [...live.values()].some((job) => needs(job, assetId));
}

function needs(job: LiveJob, assetId: string): boolean {
  return job.reads.has(assetId) || job.outputs.some((output) => output.id === assetId);
}
