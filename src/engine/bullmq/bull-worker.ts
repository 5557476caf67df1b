import { type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import type { Redis } from '../../redis/redis.ts';
import type { Logger } from '../../observability/log.ts';
import { workerLost } from '../jobs/job-lifecycle.ts';
import type { JobQueueWorkerOptions, QueueStop, RunOutcome } from '../jobs/job-queue.ts';
import { QUEUE_NAME, type QueueKeys } from './redis-keys.ts';

/**
 * The interval at which locks are renewed. It is much shorter than a lock, so that locks do not expire when Redis is
 * unreachable for some seconds.
 */
const RENEW_MS = 500;
/** The interval at which idle workers poll, because BullMQ does not notify them of a returned job. */
const IDLE_POLL_S = 1;
/** A job fails when more of its workers died, even if none of its nodes has begun. */
const MAX_STALLS = 20;
const RETRY_DELAY_MS = { first: 1000, last: 30_000 } as const;
/** The same error is logged at most once in this time. */
const LOG_REPEAT_MS = 30_000;
const MAX_REASONS = 100;

/** The times after which other workers take over the jobs of a crashed worker: life of a lock, interval of the check. */
export type TakeoverTimes = { readonly lockMs: number; readonly checkMs: number };

export type BullOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly takeover: TakeoverTimes;
  readonly clock: Clock;
  readonly log: Logger;
};

type BullWorkerOptions = BullOptions & {
  /** Called when a job of this user was returned to the queue. */
  onReturned(user: string): Promise<void>;
};

type BullJob = Job<{ readonly user: string }>;

/** Runs the jobs that BullMQ assigns to this process. */
export class BullWorker {
  readonly #options: BullWorkerOptions;
  readonly #job: JobQueueWorkerOptions;
  readonly #worker: Worker<{ readonly user: string }, void>;
  readonly #recentlyLogged = new LRUCache<string, true>({ max: MAX_REASONS, ttl: LOG_REPEAT_MS });
  readonly #running = new Set<string>();
  #isClosing = false;

  constructor(job: JobQueueWorkerOptions, options: BullWorkerOptions) {
    this.#options = options;
    this.#job = job;
    // BullMQ passes a signal only to a function that declares three parameters.
    this.#worker = new Worker(QUEUE_NAME, (job, token, signal) => this.#run(job, token, signal), {
      ...workerOptions(options),
      concurrency: job.concurrency,
      autorun: false,
    });
    this.#worker.on('error', (error) => this.#onError(error));
    this.#worker.on('failed', (job, error) => void this.#onFailed(job, error));
    this.#worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => this.stop(id, 'lost')));
  }

  start(): void {
    if (this.#isClosing) return;
    this.#worker.run().catch((error: unknown) => {
      if (this.#isClosing) return;
      this.#options.log.fatal(
        { event: 'queue.worker_stopped', err: error },
        'the worker of the job queue has stopped',
      );
    });
  }

  /** Stops a job if it runs here. */
  stop(id: string, reason: QueueStop): void {
    this.#worker.cancelJob(id, reason);
  }

  /** The ids of the jobs that run here. */
  running(): readonly string[] {
    return [...this.#running];
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const closed = this.#worker.close();
    this.#worker.cancelAllJobs('shutdown' satisfies QueueStop);
    await closed;
  }

  async #run(job: BullJob, token?: string, signal = AbortSignal.abort('shutdown')): Promise<void> {
    const outcome = this.#isClosing ? 'interrupted' : await this.#runHere(job.id ?? '', signal);
    if (outcome === 'over') return;
    await job.moveToWait(token);
    await this.#options.onReturned(job.data.user);
    throw new WaitingError();
  }

  async #runHere(id: string, signal: AbortSignal): Promise<RunOutcome> {
    this.#running.add(id);
    return await this.#job.run(id, signal).finally(() => this.#running.delete(id));
  }

  /** Logs a failed run. Ends the job if BullMQ has given it up, after too many runs or deaths; otherwise BullMQ tries again. */
  async #onFailed(job: BullJob | undefined, error: Error): Promise<void> {
    const { log } = this.#options;
    log.error(
      { event: 'queue.ticket_failed', err: error, job: job?.id },
      'a job of the queue could not be processed',
    );
    if (job?.id === undefined || job.finishedOn === undefined) return;
    const isDead = error instanceof UnrecoverableError;
    await this.#job.giveUp(job.id, isDead ? workerLost(MAX_STALLS + 1) : error);
  }

  #onError({ name, message: reason }: Error): void {
    if (name === 'ReplyError') void this.#pause();
    if (!this.#recentlyLogged.has(reason)) {
      const event = 'queue.unavailable';
      this.#options.log.warn({ event, reason }, 'the job queue reports an error');
    }
    this.#recentlyLogged.set(reason, true);
  }

  /**
   * Pauses the worker for a second. When Redis refuses a command, for example because it is full, BullMQ repeats it
   * without a delay, 9,000 times a second.
   */
  async #pause(): Promise<void> {
    if (this.#worker.isPaused()) return;
    await this.#worker.pause(true);
    await this.#options.clock.sleep(RETRY_DELAY_MS.first);
    if (!this.#isClosing) await this.#worker.resume();
  }
}

function workerOptions({ redis, keys, takeover }: BullWorkerOptions) {
  return {
    connection: redis,
    prefix: keys.bullPrefix,
    lockDuration: takeover.lockMs,
    lockRenewTime: Math.min(RENEW_MS, takeover.lockMs / 2),
    stalledInterval: takeover.checkMs,
    maxStalledCount: MAX_STALLS,
    drainDelay: IDLE_POLL_S,
    runRetryDelay: RETRY_DELAY_MS.first,
    settings: { backoffStrategy: retryDelayMs },
  };
}

function retryDelayMs(failures: number): number {
  return Math.min(RETRY_DELAY_MS.first * 2 ** (failures - 1), RETRY_DELAY_MS.last);
}
