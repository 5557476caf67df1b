import type { StopRequest } from '../stop-request.ts';
import type { LiveJob } from './live-job.ts';

/** A job as its queue sees it: lower `order` first among those of its user, ties by arrival. */
export type QueuedJob = Pick<LiveJob, 'id' | 'user' | 'order'>;

/** `over`: nothing is left to do; `interrupted`: the job goes back to the queue, and is next there. */
export type RunOutcome = 'over' | 'interrupted';

/** `lost`: another process may have the job now. */
export type QueueStop = 'canceled' | 'shutdown' | 'lost';

/** So many workers died while they had a job. */
export type WorkerDeaths = { readonly deaths: number };

export type JobQueueWorkerOptions = {
  /** How many jobs run at a time. */
  readonly concurrency: number;
  /** Runs a job, until its end or until it has to stop. */
  readonly run: (id: string, stop: StopRequest<QueueStop>) => Promise<RunOutcome>;
  /** Called for a job that is run no more, because its runs failed or its workers died too often. */
  readonly giveUp: (id: string, reason: Error | WorkerDeaths) => Promise<void>;
};

/** Runs jobs of a queue until it is closed, which stops them. */
export type JobQueueWorker = { start(): void; close(): Promise<void> };

/**
 * The jobs that wait, and the workers that take them. Users take turns: a free slot goes to the user
 * with the fewest running jobs, among these to the one who has waited longest.
 */
export type JobQueue = {
  /** Adds jobs; does nothing for one that waits already or that runs. */
  add(jobs: readonly QueuedJob[]): Promise<void>;
  /** Removes a job that no live worker has; false when one has it. */
  remove(id: string): Promise<boolean>;
  /** Tells a job to stop now, or as soon as it runs; false when it has ended. */
  cancel(id: string): Promise<boolean>;
  /** How many jobs will be taken before each of these; null for one that does not wait. */
  positions(ids: readonly string[]): Promise<readonly (number | null)[]>;
  /** How many jobs wait. */
  waiting(): Promise<number>;
  /** How many jobs of a user wait; at least, of many, whether some do. */
  waitingOf(user: string): Promise<number>;
  /** An order after everything queued so far. */
  nextOrder(): Promise<number>;
  /** Slots of this process that can be reserved; absent where other processes take jobs too. */
  readonly slots?: {
    /** Reserves a slot for a job that is about to be added; false: the job has to wait. */
    reserve(id: string): boolean;
    /** For a job that is not added. */
    release(id: string): void;
  };
  worker(options: JobQueueWorkerOptions): JobQueueWorker;
  close(): Promise<void>;
};
