import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { readValue } from '../../lib/lazy-json.ts';
import type { EngineOptions, Engine, JobCalls } from '../job-engine.ts';
import { ok } from '../../protocol/job-api.ts';
import { createWorkerRequestHandler } from '../jobs/worker-requests.ts';
import { Dispatcher } from './dispatcher.ts';
import { createJobReader } from '../jobs/job-reader.ts';
import { PeriodicTask } from '../periodic-task.ts';
import { type LiveJob, jobStateOf } from '../jobs/live-job.ts';
import { createOutputNames } from '../assets/outputs.ts';
import { recoverJobs, createJobLifecycle } from '../jobs/job-lifecycle.ts';
import { SWEEP_FAILURE, importedBytes, sweepWithUnrecorded } from '../assets/retention.ts';
import { type JobFiles, createAssetApi, createJobFiles } from '../assets/job-files.ts';
import { acceptJob } from '../jobs/accept-job.ts';
import { JobThreads } from '../jobs/job-threads.ts';

/**
 * Opens the engine over its ledger and files, and queues the jobs that an earlier process left
 * unfinished.
 */
export async function createEmbeddedEngine(deps: EngineOptions): Promise<Engine> {
  const { ledger, limits, clock = systemClock } = deps;
  const live = new Map<string, LiveJob>();
  const jobFiles = openJobFiles({ ...deps, clock, live });
  const spoolDir = deps.spoolDir ?? (await makeEmptySpool(deps.dataDir));
  const dispatcher = openDispatcher({ ...deps, clock, live }, jobFiles, spoolDir);
  const unfinished = await recoverJobs({
    ledger,
    clock,
    assets: jobFiles.assets,
    retentionMs: limits.retentionMs,
  });
  for (const job of unfinished) dispatcher.add(job);
  const sweeps = createSweeps({ ...deps, clock, live }, jobFiles);
  const periodicSweep = new PeriodicTask(sweeps.all, {
    log: deps.log,
    clock,
    everyMs: limits.sweepIntervalMs,
    failure: SWEEP_FAILURE,
  });
  return {
    ...createJobApi({ ...deps, clock, live }, jobFiles, dispatcher),
    ...createAssetApi(jobFiles.assets),
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    start() {
      dispatcher.start();
      periodicSweep.start(sweeps.checkImports);
    },
    async close() {
      await periodicSweep.close();
      await dispatcher.close();
    },
  };
}

type OpenedEngineOptions = EngineOptions & {
  readonly live: Map<string, LiveJob>;
  readonly clock: Clock;
};

function openJobFiles(deps: OpenedEngineOptions): JobFiles {
  const { live, limits } = deps;
  const { retentionMs } = limits;
  return createJobFiles({
    ...deps,
    names: createOutputNames(),
    isInUse: isUsedByLiveJob(live),
    retentionMs,
  });
}

function openDispatcher(
  deps: OpenedEngineOptions,
  jobFiles: JobFiles,
  spoolDir: string,
): Dispatcher {
  const { ledger, limits, log, clock, live } = deps;
  const { withLock } = jobFiles;
  const { retentionMs } = limits;
  const lifecycle = createJobLifecycle({ ledger, clock, log, live, withLock, retentionMs });
  const begin = (job: LiveJob): Promise<void> => lifecycle.countAttempt(job);
  const answer = createWorkerRequestHandler({ ...jobFiles, begin });
  return new Dispatcher({
    log,
    clock,
    live,
    lifecycle,
    maxQueued: limits.maxQueued,
    concurrency: limits.concurrency,
    threads: new JobThreads({ ...deps, spoolDir, jobFiles, answer }),
    onEnd: (job) => jobFiles.outputRetention.extend(job),
  });
}

function createSweeps(
  deps: OpenedEngineOptions,
  jobFiles: JobFiles,
): { readonly [K in 'all' | 'checkImports']: () => Promise<void> } {
  const { ledger, limits, live, clock, log } = deps;
  const isLive = (jobId: string): boolean => live.has(jobId);
  const isInUse = isUsedByLiveJob(live);
  const { assetBudgetBytes } = limits;
  const retention = { ...jobFiles, ledger, clock, isLive, isInUse, assetBudgetBytes };
  return {
    all: () => sweepWithUnrecorded(retention),
    async checkImports() {
      const bytes = await importedBytes(retention);
      if (bytes >= assetBudgetBytes)
        log.warn({ event: 'disk_budget.used_by_imports', bytes }, IMPORTS_FILL_BUDGET);
    },
  };
}

const IMPORTS_FILL_BUDGET =
  'imported files alone use up --disk-budget: new results are removed as soon as their jobs are over';

function createJobApi(
  deps: OpenedEngineOptions,
  { fileLookupOf }: JobFiles,
  dispatcher: Dispatcher,
): JobCalls {
  const { ledger, clock, live, limits } = deps;
  const reader = createJobReader({
    ledger,
    clock,
    find: (id) => live.get(id),
    statesOf: async (rows) => rows.map((row) => live.get(row.id) ?? jobStateOf(row)),
    ownEvents({ user }, id, signal) {
      const job = live.get(id);
      return job?.user === user ? job.feed.subscribe(signal) : undefined;
    },
  });
  const acceptOptions = {
    ledger,
    clock,
    fileLookupOf,
    nodes: deps.nodes,
    retentionMs: limits.retentionMs,
    reserve: (user: string) => dispatcher.reserve(user),
    nextOrder: () => dispatcher.nextOrder(),
    threads: {
      reserve: (job: LiveJob) => dispatcher.reserveThread(job),
      release: (job: LiveJob) => dispatcher.releaseThread(job),
    },
    durability: 'soon' as const,
  };
  return {
    ...reader,
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, acceptOptions);
      if (!accepted.ok) return accepted;
      const job = accepted.value;
      const synced = ledger.synced();
      job.feed.hold();
      // It may run while the disk works.
      const workflow = readValue(job.workflow);
      const shown = { ...dispatcher.add(job), x_workflow: workflow };
      try {
        await synced;
      } finally {
        // The submitter subscribes first.
        setImmediate(() => job.feed.release());
      }
      return ok(shown);
    },
    async cancel(caller, jobId) {
      const job = live.get(jobId);
      if (job?.user === caller.user) await dispatcher.cancel(job);
      return await reader.get(caller, jobId);
    },
  };
}

/** Files found there belonged to a process that has ended. */
async function makeEmptySpool(dataDir: string): Promise<string> {
  const spoolDir = path.join(dataDir, 'spool');
  await rm(spoolDir, { recursive: true, force: true });
  await mkdir(spoolDir, { recursive: true });
  return spoolDir;
}

function isUsedByLiveJob(live: ReadonlyMap<string, LiveJob>): (assetId: string) => boolean {
  return (assetId) => [...live.values()].some((job) => usesAsset(job, assetId));
}

function usesAsset(job: LiveJob, assetId: string): boolean {
  return job.reads.has(assetId) || job.outputs.some((output) => output.id === assetId);
}
