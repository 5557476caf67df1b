import type { FinalEnd } from './job-lifecycle.ts';
import type { JobReaderOptions } from './job-reader.ts';
import type { QueueStop } from './job-queue.ts';
import type { JobRun, WriteResult } from './job-run.ts';
import type { LiveJob } from './live-job.ts';
import type { StopRequest } from '../stop-request.ts';

/** How a worker continues with a job that it took from the queue. */
type Claim =
  | { readonly kind: 'run'; readonly run: JobRun }
  | { readonly kind: 'end'; readonly job: LiveJob; readonly end: FinalEnd }
  | { readonly kind: 'over' };

/**
 * Where the state of unfinished jobs is and how their events travel: in this process, or in the Redis
 * of several.
 */
export type RunStore = Pick<JobReaderOptions, 'find' | 'ownEvents' | 'subscribe' | 'statesOf'> & {
  /** Other processes may take a job over: the files of the earlier run are removed. */
  readonly isShared: boolean;
  /** A job is stored and about to be queued. Call the result once its submitter has the answer. */
  add(job: LiveJob): () => void;
  /** The jobs that an earlier process left unfinished, to be queued; ends those that must not run. */
  recover?(end: (job: LiveJob, end: FinalEnd) => Promise<void>): Promise<readonly LiveJob[]>;
  /** Begins a run. */
  claim(id: string, stop: StopRequest<QueueStop>): Promise<Claim>;
  /** Takes a job to end it, from any worker that may have it; `undefined`: it is over. */
  seize(id: string): Promise<LiveJob | undefined>;
  /** A client asks to cancel a job that runs; survives `kill -9` once this resolves. */
  recordCancel(id: string): Promise<void>;
  /** Counts the attempt: the first node begins. Throws when another process has the job. */
  begin(job: LiveJob): Promise<void>;
  /** True while no other process has taken the job over. */
  isCurrent(job: LiveJob): Promise<boolean>;
  /** Stores the end of a job, then shows it to its subscribers. */
  end(job: LiveJob, ended: LiveJob): Promise<WriteResult>;
  /** Makes a job of an interrupted run wait again; an orderly stop is not a failed attempt. */
  requeue(run: JobRun): Promise<void>;
  /** The results of a run that another process took over are removed: its worker did not crash. */
  discarded(job: LiveJob): Promise<void>;
};
