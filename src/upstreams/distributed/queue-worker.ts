import { type Job as Ticket, WaitingError, Worker } from 'bullmq';
import type { SharedServices, TakeoverTimes } from './shared-services.ts';
import { LRUCache } from 'lru-cache';
import type { Logger } from '../../observability/log.ts';
import type { JobRuns, Outcome } from './job-runs.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';
import { QUEUE_NAME } from '../distributed-state/ticket-queue.ts';

/**
 * The interval at which locks are renewed. A lock renewed long before it expires survives some
 * seconds without Redis, so that no job is tried again because of that.
 */
const RENEW_MS = 1000;

/** A requeued job sends no notification: idle workers poll at this interval. */
const IDLE_POLL_S = 1;
/** Interval at which cancels are polled, in case a message was lost. */
const CANCEL_POLL_MS = 5000;
const RETRY_DELAY_MS = 1000;
/** The same error is logged at most once in this time. */
const LOG_REPEAT_MS = 30_000;
const MAX_REASONS = 100;

export type QueueWorkerOptions = Pick<SharedServices, 'redis' | 'keys' | 'pubsub' | 'clock'> & {
  readonly runState: Pick<RunStateStore, 'isCancelAsked'>;
  readonly jobRuns: JobRuns;
  readonly concurrency: number;
  readonly takeover: TakeoverTimes;
  readonly log: Logger;
};

/** Takes jobs from the queue while a worker thread is free. */
export class QueueWorker {
  readonly #options: QueueWorkerOptions;
  readonly #worker: Worker;
  readonly #recentlyLogged = new LRUCache<string, true>({ max: MAX_REASONS, ttl: LOG_REPEAT_MS });
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: QueueWorkerOptions) {
    this.#options = options;
    this.#worker = new Worker(QUEUE_NAME, (ticket, token) => this.#take(ticket, token), {
      ...workerOptions(options),
      autorun: false,
    });
    this.#worker.on('error', (error) => this.#onError(error));
    this.#worker.on('lockRenewalFailed', (ids) =>
      ids.forEach((id) => options.jobRuns.onLeaseLost(id)),
    );
  }

  start(): void {
    const { pubsub, keys, log } = this.#options;
    this.#timer = setInterval(() => this.#pollCancels(), CANCEL_POLL_MS).unref();
    pubsub.onReconnect(() => this.#pollCancels());
    pubsub
      .subscribe(keys.queueChannel, (message) => this.#onMessage(message))
      // Cancels that were requested before the subscription.
      .then(() => this.#pollCancels())
      .catch((error: unknown) =>
        log.error(
          { event: 'cancel.subscription_failed', err: error },
          'could not subscribe to cancels',
        ),
      );
    this.#worker.run().catch((error: unknown) => {
      if (this.#isClosing) return;
      log.fatal(
        { event: 'queue.worker_stopped', err: error },
        'the worker of the job queue has stopped',
      );
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    const closed = this.#worker.close();
    this.#options.jobRuns.interruptAll();
    await closed;
  }

  async #take(ticket: Ticket, token?: string): Promise<void> {
    if ((await this.#run(ticket.id ?? '')) === 'over') return;
    await this.#return(ticket, token);
    // BullMQ takes every other thrown error for the end of the ticket.
    throw new WaitingError();
  }

  /** A job that could not be run for an internal reason is tried again, like one whose worker crashed. */
  async #run(ticketId: string): Promise<Outcome> {
    if (this.#isClosing) return 'interrupted';
    try {
      return await this.#options.jobRuns.run(ticketId);
    } catch (error) {
      this.#options.log.error(
        { event: 'queue.ticket_failed', err: error, job: ticketId },
        'a ticket of the job queue could not be processed',
      );
      if (!this.#isClosing) await this.#options.clock.sleep(RETRY_DELAY_MS);
      return 'interrupted';
    }
  }

  async #return(ticket: Ticket, token?: string): Promise<void> {
    for (;;) {
      try {
        return void (await ticket.moveToWait(token));
      } catch (error) {
        // BullMQ's own error, with a number: another worker has the ticket now.
        const isDecided = typeof (error as { code?: unknown }).code === 'number';
        if (isDecided || this.#isClosing) return;
        await this.#options.clock.sleep(RETRY_DELAY_MS);
      }
    }
  }

  #onError({ name, message: reason }: Error): void {
    if (name === 'ReplyError') void this.#pause();
    if (!this.#recentlyLogged.has(reason)) {
      // BullMQ tries again every second.
      const event = 'queue.unavailable';
      this.#options.log.warn({ event, reason }, 'the job queue reports an error');
    }
    this.#recentlyLogged.set(reason, true);
  }

  /** BullMQ retries without a delay when Redis refuses a command, as a full Redis does: 9,000 times a second. */
  async #pause(): Promise<void> {
    if (this.#worker.isPaused()) return;
    await this.#worker.pause(true);
    await this.#options.clock.sleep(RETRY_DELAY_MS);
    if (!this.#isClosing) await this.#worker.resume();
  }

  #pollCancels(): void {
    const { jobRuns, runState, log } = this.#options;
    for (const id of jobRuns.ids()) {
      runState.isCancelAsked(id).then(
        (isAsked) => isAsked && jobRuns.cancel(id),
        (error: unknown) =>
          log.warn(
            { event: 'cancel.poll_failed', err: error, job: id },
            'could not check for a cancel',
          ),
      );
    }
  }

  #onMessage(message: Buffer): void {
    const [word, id = ''] = message.toString().split(' ');
    if (word === 'cancel') this.#options.jobRuns.cancel(id);
  }
}

function workerOptions({ redis, keys, concurrency, takeover }: QueueWorkerOptions) {
  return {
    connection: redis,
    prefix: keys.bullPrefix,
    concurrency,
    lockDuration: takeover.lockMs,
    lockRenewTime: Math.min(RENEW_MS, takeover.lockMs / 2),
    stalledInterval: takeover.checkMs,
    // Attempts are counted in the run state, where orderly stops do not count.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    drainDelay: IDLE_POLL_S,
    runRetryDelay: RETRY_DELAY_MS,
  };
}
