import { systemClock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { createJobFiles } from '../assets/job-files.ts';
import { createOutputNames } from '../assets/outputs.ts';
import {
  type RetentionOptions,
  importedBytes,
  removeUnrecorded,
  sweep,
} from '../assets/retention.ts';
import type { Engine, EngineOptions } from '../job-engine.ts';
import { createEngine } from '../jobs/create-engine.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import { PeriodicSweep } from '../periodic-sweep.ts';
import { MemoryJobQueue } from './memory-job-queue.ts';
import { MemoryRuns, createLiveJobs, recoverJobs } from './memory-runs.ts';

/**
 * Opens the engine of a single process over its ledger and files, and queues the unfinished jobs of
 * an earlier process.
 */
export async function createEmbeddedEngine(deps: EngineOptions): Promise<Engine> {
  const { ledger, limits, log, clock = systemClock } = deps;
  const live = new Map<string, LiveJob>();
  const closing = new AbortController();
  const isLive = (jobId: string): boolean => live.has(jobId);
  const isInUse = (assetId: string): boolean =>
    Array.from(live.values()).some(
      ({ reads, outputs }) => reads.has(assetId) || outputs.some(({ id }) => id === assetId),
    );
  const names = createOutputNames();
  const { library, outputFiles } = deps;
  const common = { ...deps, ...library, ...outputFiles, clock };
  const jobFiles = createJobFiles({ ...common, names, isInUse });
  const retention = { ...jobFiles, ledger, limits, clock, isLive, isInUse };
  const unfinished = { ...jobFiles, ledger, live };
  const engine = await createEngine(deps, {
    clock,
    jobFiles,
    queue: new MemoryJobQueue<LiveJob>(emitPositions),
    live: createLiveJobs(unfinished),
    runs: new MemoryRuns({ ...unfinished, closing: closing.signal, clock, log }),
    recover: (end) => recoverJobs(unfinished, end),
    cleanUp: new PeriodicSweep({
      log,
      clock,
      everyMs: limits.sweepIntervalMs,
      first: () => checkImports(retention, log),
      sweep: () => removeOld(retention),
    }),
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

function emitPositions(waiting: readonly LiveJob[]): void {
  waiting.forEach((job, position) => {
    if (job.position === position) return;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  });
}

async function removeOld(retention: RetentionOptions): Promise<void> {
  await sweep(retention);
  await removeUnrecorded(retention);
}

async function checkImports(retention: RetentionOptions, log: Logger): Promise<void> {
  const bytes = await importedBytes(retention);
  if (bytes >= retention.limits.assetBudgetBytes)
    log.warn({ event: 'disk_budget.used_by_imports', bytes }, IMPORTS_FILL_BUDGET);
}

const IMPORTS_FILL_BUDGET =
  'imported files alone use up --disk-budget: new results are removed as soon as their jobs are over';
