import type { FinalEnd } from './job-lifecycle.ts';
import type { LiveJob } from './live-job.ts';

/**
 * A job as its queue sees it. Among jobs of one user the lower `order` is first, then the earlier
 * arrival.
 */
export type QueuedJob = Pick<LiveJob, 'id' | 'user' | 'order'>;

/** `over`: nothing is left to do. `interrupted`: the job returns to the queue and is next there. */
export type RunOutcome = 'over' | 'interrupted';

/** `lost`: another process may have the job now. */
export type QueueStop = 'canceled' | 'shutdown' | 'lost';

export type JobQueueWorkerOptions = {
  /** The number of jobs that run at a time. */
  readonly concurrency: number;
  /** Runs a job until it ends or has to stop. The reason of the signal is a `QueueStop`. */
  readonly run: (id: string, stop: AbortSignal) => Promise<RunOutcome>;
  /**
   * Called for a job that is not run again: with the error of its runs, or with its end.
   */
  readonly giveUp: (id: string, reason: Error | FinalEnd) => Promise<void>;
};

/** Runs the jobs of a queue until it is closed. Closing stops them. */
export type JobQueueWorker = { start(): void; close(): Promise<void> };

export type WaitingJobs = { readonly all: number; readonly own: number };

/**
 * The waiting jobs, and the workers that take them. Users take turns: a free slot goes to the user
 * with the fewest running jobs, among equals to the one who has waited longest.
 */
export type JobQueue = {
  /** Adds jobs. A job that waits or runs already is ignored. */
  add(jobs: readonly QueuedJob[]): Promise<void>;
  /** Removes a job. False when a live worker has it. */
  remove(id: string): Promise<boolean>;
  /** Tells a job to stop now, or as soon as it runs. False when it has ended. */
  cancel(id: string): Promise<boolean>;
  /**
   * Returns for each job how many others will be taken before it; null for a job that does not
   * wait.
   */
  positions(ids: readonly string[]): Promise<readonly (number | null)[]>;
  /**
   * Returns the number of waiting jobs, and of those of a user. Of many, a shared queue may count
   * only some of the user's, but at least one.
   */
  waiting(user: string): Promise<WaitingJobs>;
  /** Returns an order after all jobs that were queued so far. */
  nextOrder(): Promise<number>;
  worker(options: JobQueueWorkerOptions): JobQueueWorker;
  close(): Promise<void>;
};
