import { packageUrl } from '../../lib/package-url.ts';
import type { EngineOptions } from '../job-engine.ts';
import type { LiveJob } from './live-job.ts';
import type { JobEnd } from './job-lifecycle.ts';
import { type RunnerOptions, runOnWorker } from './run-on-worker.ts';
import { WorkerThread } from './worker-thread.ts';

export type JobThreadsOptions = RunnerOptions &
  Pick<EngineOptions, 'library' | 'outputFiles' | 'traceRun'>;

/** A worker thread, its current job, and the user of its previous job. */
type Assignment = {
  readonly thread: WorkerThread;
  job: LiveJob | undefined;
  lastUser: string | undefined;
};

/** The worker threads of this process. `limits.concurrency` jobs run at a time. */
export class JobThreads {
  readonly #assignments: readonly Assignment[];
  readonly #options: JobThreadsOptions;

  constructor(options: JobThreadsOptions) {
    const { limits, library } = options;
    this.#options = options;
    const setup = {
      nodesModule: library.nodesModule ?? packageUrl('dist/nodes/library.js').href,
      cacheBytes: limits.cacheBytes,
      spoolDir: options.outputFiles.spoolDir,
    };
    this.#assignments = Array.from({ length: limits.concurrency }, () => ({
      thread: new WorkerThread(setup),
      job: undefined,
      lastUser: undefined,
    }));
  }

  /** Runs the nodes of a job on a free thread. */
  async run(job: LiveJob): Promise<JobEnd> {
    const assignment = this.#choose(job.user);
    if (!assignment) throw new Error('a job was taken although all workers are busy');
    assignment.job = job;
    const endSpan = this.#options.traceRun?.(job.traceparent);
    let outcome = 'broken';
    try {
      const end = await runOnWorker(job, assignment.thread, this.#options);
      outcome = end.status;
      return end;
    } finally {
      endSpan?.(outcome);
      assignment.job = undefined;
      assignment.lastUser = job.user;
    }
  }

  /** Makes the next job of this user compute all nodes anew. */
  forgetResults(user: string): void {
    for (const { thread } of this.#assignments) thread.forget(user);
  }

  async terminate(): Promise<void> {
    await Promise.all(this.#assignments.map(({ thread }) => thread.terminate()));
  }

  /**
   * Chooses a free thread. It prefers the one that last served this user, since it has the user's
   * cache.
   */
  #choose(user: string): Assignment | undefined {
    const free = this.#assignments.filter((assignment) => !assignment.job);
    return (
      free.find((assignment) => assignment.lastUser === user) ??
      free.find((assignment) => assignment.lastUser === undefined) ??
      free[0]
    );
  }
}
