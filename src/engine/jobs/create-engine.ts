import type { Clock } from '../../lib/clock.ts';
import { ok } from '../../protocol/job-api.ts';
import type { JobFiles } from '../assets/job-files.ts';
import type { Engine, EngineOptions } from '../job-engine.ts';
import { createJobCalls } from './job-calls.ts';
import type { JobQueue } from './job-queue.ts';
import { JobRunner } from './job-runner.ts';
import { JobThreads } from './job-threads.ts';
import type { LiveJob } from './live-job.ts';
import type { JobRuns, LiveJobs } from './run-store.ts';
import type { PeriodicSweep } from '../periodic-sweep.ts';
import type { FinalEnd } from './job-lifecycle.ts';
import { createWorkerRequestHandler } from './worker-requests.ts';

export type EndJob = (job: LiveJob, end: FinalEnd) => Promise<void>;

/**
 * The parts that differ between one process and several: the queue, the state of runs, the
 * clean-up.
 */
type EngineParts = {
  readonly queue: JobQueue;
  readonly live: LiveJobs;
  readonly runs: JobRuns;
  /**
   * Returns the unfinished jobs of an earlier process, to be queued. Ends those that must not run.
   */
  readonly recover?: (end: EndJob) => Promise<readonly LiveJob[]>;
  readonly jobFiles: JobFiles;
  readonly clock: Clock;
  /** Removes data past its retention, at an interval. */
  readonly cleanUp: PeriodicSweep;
};

/**
 * Creates the engine of jobs, which accepts, runs, cancels and ends them. With `concurrency` 0 it
 * runs none.
 */
export async function createEngine(options: EngineOptions, parts: EngineParts): Promise<Engine> {
  const { limits } = options;
  const { jobFiles, queue, cleanUp } = parts;
  const answer = createWorkerRequestHandler({ ...options, ...parts });
  const threads = new JobThreads({ ...options, ...parts, answer });
  const runner = new JobRunner({ ...options, ...parts, ...jobFiles, threads });
  const unfinished = await parts.recover?.((job, end) => runner.end(job, end));
  await queue.add(unfinished ?? []);
  const worker =
    limits.concurrency === 0
      ? undefined
      : queue.worker({
          concurrency: limits.concurrency,
          run: (id, stop) => runner.run(id, stop),
          giveUp: (id, reason) => runner.giveUp(id, reason),
        });
  return {
    ...createJobCalls({ ...options, ...parts, runner }),
    ...jobFiles.assets.calls,
    health: async () => ok({ status: 'healthy', upstream: 'embedded' }),
    forgetResults: (user) => threads.forgetResults(user),
    start() {
      worker?.start();
      cleanUp.start();
    },
    async close() {
      await worker?.close();
      await threads.terminate();
      await cleanUp.close();
      await queue.close();
    },
  };
}
