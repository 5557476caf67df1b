import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { type JobFiles, createJobFiles } from '../assets/job-files.ts';
import { createOutputNames } from '../assets/outputs.ts';
import { SWEEP_FAILURE, importedBytes, sweepWithUnrecorded } from '../assets/retention.ts';
import type { Engine, EngineOptions } from '../job-engine.ts';
import { createEngine } from '../jobs/create-engine.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import { PeriodicTask } from '../periodic-task.ts';
import { MemoryJobQueue } from './memory-job-queue.ts';
import { createMemoryRuns } from './memory-runs.ts';

/**
 * Opens the engine of a single process over its ledger and files, and queues the jobs that an earlier
 * process left unfinished.
 */
export async function createEmbeddedEngine(deps: EngineOptions): Promise<Engine> {
  const { ledger, limits, log, clock = systemClock } = deps;
  const live = new Map<string, LiveJob>();
  const closing = new AbortController();
  const { retentionMs } = limits;
  const isInUse = isUsedByLiveJob(live);
  const names = createOutputNames();
  const jobFiles = createJobFiles({ ...deps, clock, names, isInUse, retentionMs });
  const spoolDir = deps.spoolDir ?? (await makeEmptySpool(deps.dataDir));
  const sweeps = createSweeps({ ...deps, clock, live }, jobFiles);
  const everyMs = limits.sweepIntervalMs;
  const periodicSweep = new PeriodicTask(sweeps.all, {
    log,
    clock,
    everyMs,
    failure: SWEEP_FAILURE,
  });
  const engine = await createEngine({
    ...deps,
    clock,
    jobFiles,
    spoolDir,
    queue: new MemoryJobQueue<LiveJob>(emitPositions),
    runs: createMemoryRuns({ ...jobFiles, ledger, live, closing: closing.signal, clock, log }),
    cleanUp: {
      start: () => periodicSweep.start(sweeps.checkImports),
      close: () => periodicSweep.close(),
    },
  });
  return {
    ...engine,
    async close() {
      closing.abort();
      await engine.close();
      for (const job of live.values()) job.feed.end();
    },
  };
}

type OpenedEngineOptions = EngineOptions & {
  readonly live: Map<string, LiveJob>;
  readonly clock: Clock;
};

function emitPositions(waiting: readonly LiveJob[]): void {
  waiting.forEach((job, position) => {
    if (job.position === position) return;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
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

/** Files found there belonged to a process that has ended. */
async function makeEmptySpool(dataDir: string): Promise<string> {
  const spoolDir = path.join(dataDir, 'spool');
  await rm(spoolDir, { recursive: true, force: true });
  await mkdir(spoolDir, { recursive: true });
  return spoolDir;
}

function isUsedByLiveJob(live: ReadonlyMap<string, LiveJob>): (assetId: string) => boolean {
  return (assetId) => {
    for (const job of live.values()) if (usesAsset(job, assetId)) return true;
    return false;
  };
}

function usesAsset(job: LiveJob, assetId: string): boolean {
  return job.reads.has(assetId) || job.outputs.some((output) => output.id === assetId);
}
