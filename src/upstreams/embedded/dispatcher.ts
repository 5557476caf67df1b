import type { Clock } from '../../lib/clock.ts';
import {
  type WorkerAssignment,
  chooseWorker,
  idleWorkers,
  type WorkerThread,
} from '../jobs/worker-thread.ts';
import type { Logger } from '../../observability/log.ts';
import { internalError } from '../jobs/job-error.ts';
import type { LiveJob, StopReason } from '../jobs/live-job.ts';
import { createReservations } from '../jobs/fair-order.ts';
import type { JobQueueWorker, RunOutcome } from '../jobs/job-queue.ts';
import { MemoryJobQueue } from './memory-job-queue.ts';
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
  readonly #queue = new MemoryJobQueue<LiveJob>(emitPositions);
  readonly #worker: JobQueueWorker;
  /** Reserves room in the queue for a job of this user; `undefined` when it is full. */
  readonly reserve: ReturnType<typeof createReservations>;
  #cancelThreadStart: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#assignments = idleWorkers(options.threads);
    this.reserve = createReservations(this.#queue, options.maxQueued);
    this.#worker = this.#queue.worker({
      concurrency: options.threads.length,
      run: (id, signal) => this.#run(id, signal),
      giveUp: (id, cause) => this.#giveUp(id, cause),
    });
  }

  start(): void {
    const { clock } = this.#options;
    this.#cancelThreadStart = clock.callAfter(THREADS_DELAY_MS, () => this.#startThreads());
    this.#worker.start();
  }

  #startThreads(): void {
    for (const { thread } of this.#assignments) thread.start();
  }

  async close(): Promise<void> {
    this.#cancelThreadStart?.();
    await this.#worker.close();
    await Promise.all(this.#assignments.map(({ thread }) => thread.terminate()));
    for (const job of this.#options.live.values()) job.feed.end();
  }

  /** An order after everything queued so far. */
  nextOrder(): Promise<number> {
    return this.#queue.nextOrder();
  }

  add(job: LiveJob): void {
    this.#options.live.set(job.id, job);
    void this.#queue.add([job]);
  }

  async cancel(job: LiveJob): Promise<void> {
    const { lifecycle } = this.#options;
    job.stop.abort('canceled' satisfies StopReason);
    if (await this.#queue.remove(job.id))
      return await lifecycle.finish(job, { status: 'canceled' });
    if (job.status === 'running' && !lifecycle.isEnding(job)) {
      job.status = 'canceling';
      job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
    }
    await lifecycle.save(job);
  }

  async #run(id: string, signal: AbortSignal): Promise<RunOutcome> {
    const job = this.#options.live.get(id);
    const assignment = job && chooseWorker(this.#assignments, job.user);
    if (!assignment) throw new Error('a job was taken although all workers are busy');
    assignment.job = job;
    signal.addEventListener('abort', () => job.stop.abort(signal.reason as StopReason));
    try {
      return await this.#runOn(assignment.thread, job);
    } finally {
      assignment.job = undefined;
      assignment.lastUser = job.user;
    }
  }

  async #runOn(thread: WorkerThread, job: LiveJob): Promise<RunOutcome> {
    const { clock, runner, lifecycle } = this.#options;
    job.status = 'running';
    job.position = null;
    job.startedAtMs = clock.now();
    const end = await runOnWorker(job, thread, runner);
    if (end.status === 'interrupted') {
      await lifecycle.suspend(job);
      return 'interrupted';
    }
    await lifecycle.finish(job, end);
    await this.#options.onEnd(job);
    return 'over';
  }

  async #giveUp(id: string, cause: Error): Promise<void> {
    const { log, live, lifecycle } = this.#options;
    log.error({ event: 'job.run_failed', err: cause, job: id }, 'a job could not be run');
    const job = live.get(id);
    try {
      if (job) await lifecycle.finish(job, { status: 'failed', error: internalError() });
    } catch (error) {
      const event = 'job.end_not_stored';
      log.error({ event, err: error, job: id }, 'the end of a job could not be stored');
      job?.feed.end();
    }
  }
}

function emitPositions(waiting: readonly LiveJob[]): void {
  for (const [position, job] of waiting.entries()) {
    if (job.position === position) continue;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }
}
