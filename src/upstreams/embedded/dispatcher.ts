import type { Clock } from '../../lib/clock.ts';
import type { JobThreads } from '../jobs/job-threads.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Logger } from '../../observability/log.ts';
import { internalError } from '../jobs/job-error.ts';
import { type LiveJob, showJob, unloadJob } from '../jobs/live-job.ts';
import type { Job } from '../../protocol/v2.ts';
import { createReservations } from '../jobs/fair-order.ts';
import type { StopRequest } from '../jobs/stop-request.ts';
import type { JobQueueWorker, QueueStop, RunOutcome } from '../jobs/job-queue.ts';
import { MemoryJobQueue } from './memory-job-queue.ts';
import type { JobLifecycle } from '../jobs/job-lifecycle.ts';

export type DispatcherOptions = {
  readonly lifecycle: JobLifecycle;
  readonly log: Logger;
  /** The unfinished jobs, by id. The dispatcher keeps the map up to date. */
  readonly live: Map<string, LiveJob>;
  readonly threads: JobThreads;
  readonly concurrency: number;
  readonly maxQueued: number;
  readonly clock: Clock;
  /** Called when a job has ended: the files it lists must be retained as long as the job. */
  readonly onEnd: (job: LiveJob) => Promise<void>;
};

/** A starting thread would slow down the first calls. A first job does not wait for this. */
const THREADS_DELAY_MS = 100;

/** Owns the unfinished jobs: queues them, assigns them to workers and ends them. Nothing runs before `start`. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #queue = new MemoryJobQueue<LiveJob>(emitPositions);
  readonly #worker: JobQueueWorker;
  /** Reserves room in the queue for a job of this user; `undefined` when it is full. */
  readonly reserve: ReturnType<typeof createReservations>;
  #cancelThreadStart: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.reserve = createReservations(this.#queue, options.maxQueued);
    this.#worker = this.#queue.worker({
      concurrency: options.concurrency,
      run: (id, stop) => this.#run(id, stop),
      giveUp: (id, cause) => this.#giveUp(id, cause),
    });
  }

  start(): void {
    const { clock, threads } = this.#options;
    this.#cancelThreadStart = clock.callAfter(THREADS_DELAY_MS, () => threads.start());
    this.#worker.start();
  }

  async close(): Promise<void> {
    this.#cancelThreadStart?.();
    await this.#worker.close();
    await this.#options.threads.terminate();
    for (const job of this.#options.live.values()) job.feed.end();
  }

  /** An order after everything queued so far. */
  nextOrder(): Promise<number> {
    return this.#queue.nextOrder();
  }

  /** Reserves a thread for a job that is about to be stored; `false`: the job has to wait. */
  reserveThread(job: LiveJob): boolean {
    return this.#queue.reserveSlot(job.id);
  }

  /** For a job that is not stored. */
  releaseThread(job: LiveJob): void {
    this.#queue.releaseSlot(job.id);
  }

  /** Queues a job, or starts it on the thread that was reserved for it. Returns it as it is before. */
  add(job: LiveJob): Job {
    const { live, clock } = this.#options;
    live.set(job.id, job);
    // It has begun on record, and no other job waits.
    const isReserved = job.hasBegun;
    if (isReserved) job.position = 0;
    else unloadJob(job);
    const before = isReserved && showJob(job, clock.now());
    void this.#queue.add([job]);
    if (isReserved) reached('after-run-begin');
    return before || showJob(job, clock.now());
  }

  async cancel(job: LiveJob): Promise<void> {
    const { lifecycle } = this.#options;
    job.stop.request('canceled');
    if (await this.#queue.remove(job.id))
      return await lifecycle.finish(job, { status: 'canceled' });
    if (job.status === 'running' && !lifecycle.isEnding(job)) {
      job.status = 'canceling';
      job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
    }
    await lifecycle.save(job);
  }

  async #run(id: string, stop: StopRequest<QueueStop>): Promise<RunOutcome> {
    const { clock, threads, lifecycle, live, onEnd } = this.#options;
    const job = live.get(id);
    if (!job) return 'over';
    stop.onRequest((reason) => job.stop.request(reason === 'lost' ? 'shutdown' : reason));
    job.status = 'running';
    job.position = null;
    job.startedAtMs = clock.now();
    const end = await threads.run(job);
    // Its submitter must find it.
    await job.feed.whenReleased();
    if (end.status === 'interrupted') {
      await lifecycle.suspend(job);
      return 'interrupted';
    }
    await lifecycle.finish(job, end);
    await onEnd(job);
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
  waiting.forEach((job, position) => {
    if (job.position === position) return;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  });
}
