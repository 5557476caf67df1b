import type { JobError, JobStatus } from '../../protocol/v2.ts';
import { jobError } from './job-error.ts';
import type { LiveJob } from './live-job.ts';

/** An end that is final. */
export type FinalEnd =
  | { readonly status: Extract<JobStatus, 'succeeded' | 'canceled'> }
  | { readonly status: 'failed'; readonly error: JobError };

/** How a run ended. `interrupted`: the engine was closed while the job ran, which has no end yet. */
export type JobEnd = FinalEnd | { readonly status: 'interrupted' };

/** Returns the job as it is when it is over. A cancel during the last node still counts. */
export function toEndedJob(
  job: LiveJob,
  at: { end: FinalEnd; atMs: number; retentionMs: number },
): LiveJob {
  const isCanceled = job.stop.signal.reason === 'canceled';
  const end: FinalEnd = isCanceled ? { status: 'canceled' } : at.end;
  return {
    ...job,
    status: end.status,
    error: end.status === 'failed' ? end.error : null,
    completedAtMs: at.atMs,
    expiresAtMs: at.atMs + at.retentionMs,
  };
}

/**
 * A job fails after this many crashes of its process while one of its nodes was running. An orderly
 * stop, or a crash while the job waits, does not count.
 */
export const MAX_ATTEMPTS = 3;

/** The end of a job that failed outside of any node. */
export function failedEnd(...error: Parameters<typeof jobError>): FinalEnd {
  return { status: 'failed', error: jobError(...error) };
}

/** The end of a job whose server or workers have crashed too often. */
export function workerLost(attempts: number): FinalEnd {
  return failedEnd('worker_lost', `the server died ${attempts} times while running this job`);
}
