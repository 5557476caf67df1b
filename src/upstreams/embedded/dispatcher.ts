import type { Clock } from '../../lib/clock.ts';
import {
  type WorkerAssignment,
  chooseWorker,
  idleWorkers,
  type WorkerThread,
} from '../jobs/worker-thread.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Logger } from '../../observability/log.ts';
import { internalError } from '../jobs/job-error.ts';
import type { Job } from '../../protocol/v2.ts';
import { type LiveJob, showJob, type StopReason } from '../jobs/live-job.ts';
import { createJobQueue, hasQueueCapacity } from '../jobs/fair-order.ts';
import type { JobLifecycle } from '../jobs/job-lifecycle.ts';
import { runOnWorker, type RunnerOptions } from '../jobs/run-on-worker.ts';

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

/** A starting thread would slow down the first calls. A first job does not wait for this. */
const THREADS_DELAY_MS = 100;

/** Owns the unfinished jobs: queues them, assigns them to workers and ends them. Nothing runs before `start`. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #assignments: readonly WorkerAssignment[];
  readonly #queue = createJobQueue<LiveJob>(emitPositions);
  readonly #running = new Set<Promise<void>>();
  readonly #reservations: string[] = [];
  #cancelThreadStart: (() => void) | undefined;
  #isOpen = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#assignments = idleWorkers(options.threads);
  }

  start(): void {
    this.#isOpen = true;
    const { clock } = this.#options;
    this.#cancelThreadStart = clock.callAfter(THREADS_DELAY_MS, () => this.#startThreads());
    this.#schedule();
  }

  #startThreads(): void {
    for (const { thread } of this.#assignments) thread.start();
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    this.#cancelThreadStart?.();
    for (const { job } of this.#assignments) job?.stop.abort('shutdown' satisfies StopReason);
    await Promise.all(this.#running);
    await Promise.all(this.#assignments.map(({ thread }) => thread.terminate()));
    for (const job of this.#options.live.values()) job.feed.end();
  }

  /** An order after everything queued so far. */
  nextOrder(): number {
    return this.#queue.nextOrder();
  }

  /** Reserves capacity in the queue for a job of this user; `undefined` when it is full. */
  reserve(user: string): { release(): void } | undefined {
    const reserved = this.#reservations;
    const waiting = this.#queue.count() + reserved.length;
    const ofUser = this.#queue.countOf(user) + reserved.filter((other) => other === user).length;
    const limit = this.#options.maxQueued;
    if (!hasQueueCapacity({ waiting, ofUser, limit })) return undefined;
    reserved.push(user);
    return { release: () => void reserved.splice(reserved.indexOf(user), 1) };
  }

  /** Reserves an idle thread for a job that is about to be stored; `false`: the job has to wait. */
  reserveThread(job: LiveJob): boolean {
    if (!this.#isOpen || this.#queue.count() > 0) return false;
    const assignment = chooseWorker(this.#assignments, job.user);
    if (!assignment) return false;
    assignment.job = job;
    return true;
  }

  /** For a job that is not stored. */
  releaseThread(job: LiveJob): void {
    const assignment = this.#assignmentOf(job);
    if (assignment) assignment.job = undefined;
    this.#schedule();
  }

  /** Queues a job, or starts it on the thread that was reserved for it. Returns it as it is before. */
  add(job: LiveJob): Job {
    const { live, clock } = this.#options;
    live.set(job.id, job);
    const assignment = this.#assignmentOf(job);
    if (assignment) {
      job.position = 0;
      const shown = showJob(job, clock.now());
      this.#startReserved(assignment, job);
      return shown;
    }
    this.#queue.add(job);
    this.#schedule();
    return showJob(job, clock.now());
  }

  #startReserved(assignment: WorkerAssignment, job: LiveJob): void {
    this.#queue.addRunning(job);
    reached('after-run-begin');
    if (this.#isOpen) return this.#startJob(assignment, job);
    assignment.job = undefined;
    void this.#options.lifecycle.suspend(job);
  }

  async cancel(job: LiveJob): Promise<void> {
    const { lifecycle } = this.#options;
    job.stop.abort('canceled' satisfies StopReason);
    if (this.#queue.remove(job.id)) return await lifecycle.finish(job, { status: 'canceled' });
    if (job.status === 'running' && !lifecycle.isEnding(job)) {
      job.status = 'canceling';
      job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
    }
    await lifecycle.save(job);
  }

  /** Deferred, so that the submitter can subscribe before its job starts. */
  #schedule(): void {
    setImmediate(() => this.#startWaitingJobs());
  }

  #startWaitingJobs(): void {
    for (let job = this.#takeNext(); job; job = this.#takeNext()) {
      const assignment = chooseWorker(this.#assignments, job.user);
      if (!assignment) return;
      assignment.job = job;
      this.#startJob(assignment, job);
    }
  }

  #startJob(assignment: WorkerAssignment, job: LiveJob): void {
    const run = this.#runAndRelease(assignment, job).finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  #assignmentOf(job: LiveJob): WorkerAssignment | undefined {
    return this.#assignments.find((assignment) => assignment.job === job);
  }

  #takeNext(): LiveJob | undefined {
    const hasIdleWorker = this.#assignments.some(({ job }) => !job);
    return this.#isOpen && hasIdleWorker ? this.#queue.take() : undefined;
  }

  async #runAndRelease(assignment: WorkerAssignment, job: LiveJob): Promise<void> {
    try {
      await this.#run(assignment, job).catch((cause) => this.#fail(job, cause));
    } catch (cause) {
      this.#options.log.error(
        { event: 'job.end_not_stored', err: cause, job: job.id },
        'the end of a job could not be stored',
      );
      job.feed.end();
    } finally {
      assignment.job = undefined;
      assignment.lastUser = job.user;
      this.#queue.ended(job);
      this.#schedule();
    }
  }

  async #run({ thread }: WorkerAssignment, job: LiveJob): Promise<void> {
    const { clock, runner, lifecycle } = this.#options;
    job.status = 'running';
    job.position = null;
    job.startedAtMs = clock.now();
    const end = await runOnWorker(job, thread, runner);
    // Its submitter must find it.
    await job.feed.whenReleased();
    if (end.status === 'interrupted') return await lifecycle.suspend(job);
    await lifecycle.finish(job, end);
    await this.#options.onEnd(job);
  }

  async #fail(job: LiveJob, cause: unknown): Promise<void> {
    const { log, live, lifecycle } = this.#options;
    log.error({ event: 'job.run_failed', err: cause, job: job.id }, 'a job could not be run');
    if (!live.has(job.id)) return;
    await lifecycle.finish(job, { status: 'failed', error: internalError() });
  }
}

function emitPositions(waiting: readonly LiveJob[]): void {
  for (const [position, job] of waiting.entries()) {
    if (job.position === position) continue;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }
}
