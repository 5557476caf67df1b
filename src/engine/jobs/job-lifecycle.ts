import { jobError } from './job-error.ts';
import type { LiveJob } from './live-job.ts';
import type { JobEnd } from './run-on-worker.ts';

/** An end that is final. An interrupted job has no end yet. */
export type FinalEnd = Exclude<JobEnd, { status: 'interrupted' }>;

/** Returns the job as it is when it is over. A cancel during the last node still counts. */
export function toEndedJob(
  job: LiveJob,
  at: { end: FinalEnd; atMs: number; retentionMs: number },
): LiveJob {
  const isCanceled = job.stop.reason === 'canceled';
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

/** The end of a job whose server or workers have crashed too often. */
export function workerLost(attempts: number): FinalEnd {
  const message = `the server died ${attempts} times while running this job`;
  const error = jobError('worker_lost', message, { exceptionType: 'RuntimeError' });
  return { status: 'failed', error };
}
