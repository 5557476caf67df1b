import { setTimeout as delay } from 'node:timers/promises';
import { type Job as Ticket, WaitingError, Worker } from 'bullmq';
import { LRUCache } from 'lru-cache';
import type { Redis } from '../../lib/redis.ts';
import type { Logger } from '../../observability/log.ts';
import type { PubSub } from './pubsub.ts';
import type { JobRuns } from './job-runs.ts';
import type { QueueKeys } from './redis-keys.ts';
import type { RunStateStore } from './run-state.ts';
import { QUEUE_NAME } from './ticket-queue.ts';

/** How soon other workers take over the jobs of a crashed worker. */
export type TakeoverTimes = { readonly lockMs: number; readonly checkMs: number };

export const TAKEOVER: TakeoverTimes = { lockMs: 6000, checkMs: 1000 };

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

export type QueueWorkerOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly pubsub: PubSub;
  readonly runState: Pick<RunStateStore, 'isCancelAsked'>;
  readonly jobRuns: JobRuns;
  readonly concurrency: number;
  readonly takeover: TakeoverTimes;
  readonly log: Logger;
};

/** Takes jobs from the queue while a worker thread is free. */
export type QueueWorker = { start(): void; close(): Promise<void> };

export function createQueueWorker(deps: QueueWorkerOptions): QueueWorker {
  const { jobRuns, runState, pubsub, log, takeover } = deps;
  let isClosing = false;

  /**
   * A job that could not be run for an internal reason is tried again, like one whose worker
   * crashed.
   */
  async function runTicket(id: string): Promise<'over' | 'interrupted'> {
    if (isClosing) return 'interrupted';
    try {
      return await jobRuns.run(id);
    } catch (error) {
      log.error(
        { event: 'queue.ticket_failed', err: error, job: id },
        'a ticket of the job queue could not be processed',
      );
      if (!isClosing) await delay(RETRY_DELAY_MS);
      return 'interrupted';
    }
  }

  async function take(ticket: Ticket, token?: string): Promise<void> {
    const id = ticket.id ?? '';
    if ((await runTicket(id)) === 'over') return;
    await returnTicket(ticket, token);
    throw new WaitingError();
  }

  /** BullMQ takes every thrown error except `WaitingError` for the end of the ticket. */
  async function returnTicket(ticket: Ticket, token?: string): Promise<void> {
    for (;;) {
      try {
        return void (await ticket.moveToWait(token));
      } catch (error) {
        // BullMQ's own error, with a number: another worker has the ticket now.
        const isDecided = typeof (error as { code?: unknown }).code === 'number';
        if (isDecided || isClosing) return;
        await delay(RETRY_DELAY_MS);
      }
    }
  }

  const worker = new Worker(QUEUE_NAME, take, {
    connection: deps.redis,
    prefix: deps.keys.bullPrefix,
    autorun: false,
    concurrency: deps.concurrency,
    lockDuration: takeover.lockMs,
    lockRenewTime: Math.min(RENEW_MS, takeover.lockMs / 2),
    stalledInterval: takeover.checkMs,
    // Attempts are counted in the run state, where orderly stops do not count.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    drainDelay: IDLE_POLL_S,
    runRetryDelay: RETRY_DELAY_MS,
  });
  const recentlyLogged = new LRUCache<string, true>({ max: MAX_REASONS, ttl: LOG_REPEAT_MS });
  worker.on('error', ({ name, message: reason }) => {
    if (name === 'ReplyError') void pauseBriefly();
    // BullMQ tries again every second.
    if (!recentlyLogged.has(reason))
      log.warn({ event: 'queue.unavailable', reason }, 'the job queue reports an error');
    recentlyLogged.set(reason, true);
  });
  /**
   * BullMQ retries without a delay when Redis refuses a command, as a full Redis does: 9,000 times
   * a second.
   */
  async function pauseBriefly(): Promise<void> {
    if (worker.isPaused()) return;
    await worker.pause(true);
    await delay(RETRY_DELAY_MS, undefined, { ref: false });
    if (!isClosing) await worker.resume();
  }

  worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => jobRuns.onLeaseLost(id)));

  function pollCancels(): void {
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

  function onMessage(message: Buffer): void {
    const [word, id = ''] = message.toString().split(' ');
    if (word === 'cancel') jobRuns.cancel(id);
  }

  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      timer = setInterval(pollCancels, CANCEL_POLL_MS).unref();
      pubsub.onReconnect(pollCancels);
      pubsub
        .subscribe(deps.keys.pubsub, onMessage)
        // Cancels that were requested before the subscription.
        .then(pollCancels)
        .catch((error: unknown) =>
          log.error(
            { event: 'cancel.subscription_failed', err: error },
            'could not subscribe to cancels',
          ),
        );
      worker.run().catch((error: unknown) => {
        if (!isClosing)
          log.fatal(
            { event: 'queue.worker_stopped', err: error },
            'the worker of the job queue has stopped',
          );
      });
    },
    async close() {
      isClosing = true;
      clearInterval(timer);
      const closed = worker.close();
      jobRuns.interruptAll();
      await closed;
    },
  };
}
