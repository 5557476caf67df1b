import type { Clock } from '../../lib/clock.ts';
import { type WorkerAssignment, chooseWorker, idleWorkers } from '../jobs/worker-assignment.ts';
import type { Logger } from '../../observability/log.ts';
import { jobError } from '../jobs/job-error.ts';
import type { LiveJob, StopReason } from '../jobs/live-job.ts';
import { createJobQueue } from './job-queue.ts';
import type { JobLifecycle } from '../jobs/job-lifecycle.ts';
import { runOnWorker, type RunnerOptions } from '../jobs/run-on-worker.ts';
import { hasQueueCapacity } from '../jobs/fair-order.ts';
import type { WorkerThread } from '../jobs/worker-thread.ts';

export type DispatcherOptions = {
  readonly lifecycle: JobLifecycle;
  readonly log: Logger;
  /** The unfinished jobs, by id. The dispatcher keeps the map up to date. */
  readonly live: Map<string, LiveJob>;
  readonly threads: readonly WorkerThread[];
  readonly maxQueued: number;
  readonly runner: RunnerOptions;
  readonly clock: Clock;
  /** Called when a job has ended: the files it lists must be retained as long as the job. */
  onEnd(job: LiveJob): Promise<void>;
};

/** Owns the unfinished jobs: queues them, assigns them to workers and ends them. */
export type Dispatcher = {
  add(job: LiveJob): void;
  cancel(job: LiveJob): Promise<void>;
  readonly reserve: (user: string) => { release(): void } | undefined;
  readonly nextOrder: () => number;
  start(): void;
  close(): Promise<void>;
};

/** Nothing runs before `start`. */
export function createDispatcher(deps: DispatcherOptions): Dispatcher {
  const { lifecycle, clock, live } = deps;
  const assignments = idleWorkers(deps.threads);
  const queue = createJobQueue<LiveJob>(emitPositions);
  const running = new Set<Promise<void>>();
  const reservations: string[] = [];
  let isOpen = false;

  const runJobOn = async (assignment: WorkerAssignment, job: LiveJob): Promise<void> => {
    job.status = 'running';
    job.position = null;
    job.startedAtMs = clock.now();
    const end = await runOnWorker(job, assignment.thread, deps.runner);
    if (end.status === 'interrupted') return await lifecycle.suspend(job);
    await lifecycle.finish(job, end);
    await deps.onEnd(job);
  };
  const failJob = async (job: LiveJob, cause: unknown): Promise<void> => {
    deps.log.error({ event: 'job.run_failed', err: cause, job: job.id }, 'a job could not be run');
    if (!live.has(job.id)) return;
    const message = 'the engine failed to run this job';
    await lifecycle.finish(job, {
      status: 'failed',
      error: jobError('internal_error', message, { exceptionType: 'RuntimeError' }),
    });
  };
  const runAndRelease = async (assignment: WorkerAssignment, job: LiveJob): Promise<void> => {
    try {
      await runJobOn(assignment, job).catch((cause) => failJob(job, cause));
    } catch (cause) {
      deps.log.error(
        { event: 'job.end_not_stored', err: cause, job: job.id },
        'the end of a job could not be stored',
      );
      job.feed.end();
    } finally {
      assignment.job = undefined;
      assignment.lastUser = job.user;
      queue.ended(job);
      schedule();
    }
  };
  const startWaitingJobs = (): void => {
    for (let job = takeNext(); job; job = takeNext()) {
      const assignment = chooseWorker(assignments, job.user);
      if (!assignment) return;
      assignment.job = job;
      const run = runAndRelease(assignment, job).finally(() => running.delete(run));
      running.add(run);
    }
  };
  const takeNext = (): LiveJob | undefined =>
    isOpen && assignments.some((assignment) => !assignment.job) ? queue.take() : undefined;
  /** Deferred, so that the submitter can subscribe before its job starts. */
  const schedule = (): void => {
    setImmediate(startWaitingJobs);
  };

  return {
    nextOrder: queue.nextOrder,
    add(job) {
      live.set(job.id, job);
      queue.add(job);
      schedule();
    },
    reserve(user) {
      const waiting = queue.count() + reservations.length;
      const ofUser = queue.countOf(user) + reservations.filter((other) => other === user).length;
      if (!hasQueueCapacity({ waiting, ofUser, limit: deps.maxQueued })) return undefined;
      reservations.push(user);
      return { release: () => void reservations.splice(reservations.indexOf(user), 1) };
    },
    async cancel(job) {
      job.stop.abort('canceled' satisfies StopReason);
      if (queue.remove(job.id)) return await lifecycle.finish(job, { status: 'canceled' });
      if (job.status === 'running' && !lifecycle.isEnding(job)) {
        job.status = 'canceling';
        job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
      }
      await lifecycle.save(job);
    },
    start() {
      isOpen = true;
      for (const { thread } of assignments) thread.start();
      schedule();
    },
    async close() {
      isOpen = false;
      for (const assignment of assignments)
        assignment.job?.stop.abort('shutdown' satisfies StopReason);
      await Promise.all(running);
      await Promise.all(assignments.map(({ thread }) => thread.terminate()));
      for (const job of live.values()) job.feed.end();
    },
  };
}

function emitPositions(waiting: readonly LiveJob[]): void {
  for (const [position, job] of waiting.entries()) {
    if (job.position === position) continue;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }
}
