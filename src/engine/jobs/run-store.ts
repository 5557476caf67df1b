import type { FinalEnd } from './job-lifecycle.ts';
import type { JobRow } from '../../ledger/ledger.ts';
import type { Caller, JobEvents } from '../../protocol/job-api.ts';
import type { JobRun, WriteResult } from './job-run.ts';
import type { JobState, LiveJob } from './live-job.ts';

/** How a worker continues with a job that it took from the queue. */
type Claim =
  | { readonly kind: 'run'; readonly run: JobRun }
  | { readonly kind: 'end'; readonly job: LiveJob; readonly end: FinalEnd }
  | { readonly kind: 'over' };

/**
 * The unfinished jobs as clients see them, and the way of their events: in this process, or in the
 * Redis that several processes share.
 */
export type LiveJobs = {
  /** Finds an unfinished job of this process, which is shown without a read of the ledger. */
  readonly find?: (id: string) => LiveJob | undefined;
  /** Returns the current states of stored jobs. */
  statesOf(rows: readonly JobRow[]): Promise<readonly JobState[]>;
  /** Returns events that this process has already. */
  ownEvents(caller: Caller, id: string, signal: AbortSignal): JobEvents | undefined;
  /** Subscribes to the events of an unfinished job that another process runs. */
  readonly subscribe?: (id: string, signal: AbortSignal) => Promise<JobEvents>;
  /**
   * Adds a stored job that is about to be queued. Call the result when its submission is answered.
   */
  add(job: LiveJob): () => void;
  /**
   * Records that a client asks to cancel a running job. The record survives `kill -9` when this
   * resolves.
   */
  recordCancel(id: string): Promise<void>;
};

/** The runs of unfinished jobs, as their workers change them. */
export type JobRuns = {
  /**
   * True when other processes may take a job over. The files of the earlier run are then removed.
   */
  readonly isShared: boolean;
  /** Begins a run. */
  claim(id: string, stop: AbortSignal): Promise<Claim>;
  /** Takes a job from any worker in order to end it. `undefined`: the job is over. */
  seize(id: string): Promise<LiveJob | undefined>;
  /** Counts the attempt: the first node begins. Throws when another process has the job. */
  begin(job: LiveJob): Promise<void>;
  /** True while no other process has taken the job over. */
  isCurrent(job: LiveJob): Promise<boolean>;
  /** Stores the end of a job, then shows it to its subscribers. */
  end(job: LiveJob, ended: LiveJob): Promise<WriteResult>;
  /** Makes the job of an interrupted run wait again. An orderly stop is not a failed attempt. */
  requeue(run: JobRun): Promise<void>;
  /**
   * Called when the results of a run that another process took over are removed: its worker did not
   * crash.
   */
  discarded(job: LiveJob): Promise<void>;
};
