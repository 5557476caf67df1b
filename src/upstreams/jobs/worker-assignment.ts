import type { LiveJob } from './live-job.ts';
import type { WorkerThread } from './worker-thread.ts';

/** A worker thread, its current job, and the user of its previous job. */
export type WorkerAssignment = {
  readonly thread: WorkerThread;
  job: LiveJob | undefined;
  lastUser: string | undefined;
};

/** The worker threads before their first job. */
export function idleWorkers(threads: readonly WorkerThread[]): readonly WorkerAssignment[] {
  return threads.map((thread) => ({ thread, job: undefined, lastUser: undefined }));
}

/** Prefers the worker that last served this user, because it holds that user's cache. */
export function chooseWorker(
  assignments: readonly WorkerAssignment[],
  user: string,
): WorkerAssignment | undefined {
  const free = assignments.filter((assignment) => !assignment.job);
  return (
    free.find((assignment) => assignment.lastUser === user) ??
    free.find((assignment) => assignment.lastUser === undefined) ??
    free[0]
  );
}
