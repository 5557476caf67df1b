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

/** How soon a dead worker's jobs are taken up by others. */
export type TakeoverTimes = { readonly lockMs: number; readonly checkMs: number };

export const TAKEOVER: TakeoverTimes = { lockMs: 6000, checkMs: 1000 };

/**
 * A lock that is renewed long before it runs out may be short: when Redis is away for some seconds
 * it is still there afterwards, and no job is tried once more because of that.
 */
const RENEW_MS = 1000;

/** A job handed back rings no bell: idle workers look for themselves that often. */
const IDLE_POLL_S = 1;
/** In case a cancel was not heard. */
const CANCEL_POLL_MS = 5000;
const RETRY_DELAY_MS = 1000;
/** The same trouble is told no more while it goes on. */
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

/** Takes jobs from the queue as long as there is room for them. */
export type QueueWorker = { start(): void; close(): Promise<void> };

export function createQueueWorker(deps: QueueWorkerOptions): QueueWorker {
  const { jobRuns, runState, pubsub, log, takeover } = deps;
  let isClosing = false;

  /** A job whose keeping failed is tried again, as often as one whose worker died. */
  async function runTicket(id: string): Promise<'over' | 'interrupted'> {
    if (isClosing) return 'interrupted';
    try {
      return await jobRuns.run(id);
    } catch (error) {
      log.error({ err: error, job: id }, 'a job could not be looked after');
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

  /** Whatever else is thrown than that it waits, the library takes for the end of the ticket. */
  async function returnTicket(ticket: Ticket, token?: string): Promise<void> {
    for (;;) {
      try {
        return void (await ticket.moveToWait(token));
      } catch (error) {
        // Said by the library itself, with a number: the ticket is somebody else's by now.
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
    // How often a job is tried is counted where clean stops do not count.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    drainDelay: IDLE_POLL_S,
    runRetryDelay: RETRY_DELAY_MS,
  });
  const recentlyLogged = new LRUCache<string, true>({ max: MAX_REASONS, ttl: LOG_REPEAT_MS });
  worker.on('error', ({ name, message: reason }) => {
    if (name === 'ReplyError') void pauseBriefly();
    // It tries again every second.
    if (!recentlyLogged.has(reason)) log.warn({ reason }, 'the job queue is in trouble');
    recentlyLogged.set(reason, true);
  });
  /** The library asks again at once where Redis refuses, as a full one does: 9,000 times a second. */
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
        (error: unknown) => log.warn({ err: error, job: id }, 'a cancel could not be looked for'),
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
        // What was asked for in between.
        .then(pollCancels)
        .catch((error: unknown) => log.error({ err: error }, 'cancels cannot be heard'));
      worker.run().catch((error: unknown) => {
        if (!isClosing) log.fatal({ err: error }, 'the worker has stopped');
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
