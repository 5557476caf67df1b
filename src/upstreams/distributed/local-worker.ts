import path from 'node:path';
import { createWorkerRequestHandler } from '../jobs/worker-requests.ts';
import type { EngineLimits } from '../engine-limits.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import { resolveFiles } from '../jobs/resolve-files.ts';
import { nodeLibraryUrl } from '../assets/job-files.ts';
import { createWorkerThread } from '../jobs/worker-thread.ts';
import type { DistributedEngineOptions, SharedServices } from './shared-services.ts';
import { JobRuns } from './job-runs.ts';
import { TAKEN_OVER, withFence } from './fence.ts';
import { QueueWorker, TAKEOVER } from './queue-worker.ts';

/** The worker threads of this process, which run jobs of the queue. */
export type LocalWorker = { start(): void; close(): Promise<void> };

/** Runs jobs of the queue in threads of this process, as many as `concurrency` says. */
export function createLocalWorker(
  deps: DistributedEngineOptions,
  shared: SharedServices,
): LocalWorker | undefined {
  const { ledger, limits, log, nodesModule = nodeLibraryUrl() } = deps;
  const { jobFiles, runState, clock } = shared;
  if (limits.concurrency === 0) return undefined;
  const spoolDir = path.resolve(deps.spoolDir);
  const workerSetup = { nodesModule, spoolDir, cacheBytes: limits.cacheBytes };
  const threads = Array.from({ length: limits.concurrency }, () => createWorkerThread(workerSetup));
  const fenceOptions = {
    ledger,
    runState,
    assets: jobFiles.assets,
    fencedJob: (job: LiveJob) => jobRuns.fencedJob(job),
  };
  const begin = async (job: LiveJob): Promise<void> => {
    const fencedJob = jobRuns.fencedJob(job);
    if (fencedJob === undefined || (await runState.begin(fencedJob)) === 'stale')
      throw new Error(TAKEN_OVER);
  };
  const jobRuns = new JobRuns({
    ...jobFiles,
    ledger,
    runState,
    threads,
    clock,
    log,
    retentionMs: limits.retentionMs,
    runner: {
      ...runnerLimits(limits),
      nodes: deps.nodes,
      clock,
      log,
      resolve: (job) => resolveFiles(job, jobFiles.fileLookupOf(job.user)),
      answer: withFence(createWorkerRequestHandler({ ...jobFiles, begin }), fenceOptions),
    },
  });
  const { concurrency } = limits;
  const takeover = { ...TAKEOVER, ...deps.takeover };
  const worker = new QueueWorker({ ...shared, jobRuns, concurrency, takeover, log });
  return {
    start() {
      for (const thread of threads) thread.start();
      worker.start();
    },
    async close() {
      await worker.close();
      await Promise.all(threads.map((thread) => thread.terminate()));
    },
  };
}

function runnerLimits({ jobTimeMs, jobMemoryBytes, stopGraceMs }: EngineLimits) {
  return { timeLimitMs: jobTimeMs, memoryLimitBytes: jobMemoryBytes, stopGraceMs };
}
