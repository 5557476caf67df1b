import { setTimeout as delay } from 'node:timers/promises';
import { type Job as Ticket, WaitingError, Worker } from 'bullmq';
import { LRUCache } from 'lru-cache';
import type { Redis } from '../redis.ts';
import type { Logger } from '../telemetry.ts';
import type { Bus } from './bus.ts';
import type { Errands } from './errand.ts';
import type { Keys } from './keys.ts';
import type { Runs } from './runs.ts';
import { QUEUE } from './tickets.ts';

/** How soon a dead worker's jobs are taken up by others. */
export type TakeoverTimes = { readonly lockMs: number; readonly checkMs: number };

export const TAKEOVER: TakeoverTimes = { lockMs: 6000, checkMs: 1000 };

/**
 * A lock that is renewed long before it runs out may be short: when Redis is away for some seconds
 * it is still there afterwards, and no job is tried once more because of that.
 */
const RENEW_MS = 1000;

/** A job handed back rings no bell: idle workers look for themselves that often. */
const IDLE_LOOK_S = 1;
/** In case a cancel was not heard. */
const LOOK_MS = 5000;
const AFTER_TROUBLE_MS = 1000;
/** The same trouble is told no more while it goes on. */
const QUIET_MS = 30_000;
const MAX_REASONS = 100;

export type QueueWorkerDeps = {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly bus: Bus;
  readonly runs: Pick<Runs, 'isCancelAsked'>;
  readonly errands: Errands;
  readonly concurrency: number;
  readonly takeover: TakeoverTimes;
  readonly log: Logger;
};

/** Takes jobs from the queue as long as there is room for them. */
export type QueueWorker = { start(): void; close(): Promise<void> };

export function createQueueWorker(deps: QueueWorkerDeps): QueueWorker {
  const { errands, runs, bus, log, takeover } = deps;
  let isClosing = false;

  /** A job whose keeping failed is tried again, as often as one whose worker died. */
  async function outcomeOf(id: string): Promise<'over' | 'interrupted'> {
    if (isClosing) return 'interrupted';
    try {
      return await errands.run(id);
    } catch (error) {
      log.error({ err: error, job: id }, 'a job could not be looked after');
      if (!isClosing) await delay(AFTER_TROUBLE_MS);
      return 'interrupted';
    }
  }

  async function take(ticket: Ticket, token?: string): Promise<void> {
    const id = ticket.id ?? '';
    if ((await outcomeOf(id)) === 'over') return;
    await giveBack(ticket, token);
    throw new WaitingError();
  }

  /** Whatever else is thrown than that it waits, the library takes for the end of the ticket. */
  async function giveBack(ticket: Ticket, token?: string): Promise<void> {
    for (;;) {
      try {
        return void (await ticket.moveToWait(token));
      } catch (error) {
        // Said by the library itself, with a number: the ticket is somebody else's by now.
        const isDecided = typeof (error as { code?: unknown }).code === 'number';
        if (isDecided || isClosing) return;
        await delay(AFTER_TROUBLE_MS);
      }
    }
  }

  const worker = new Worker(QUEUE, take, {
    connection: deps.redis,
    prefix: deps.keys.library,
    autorun: false,
    concurrency: deps.concurrency,
    lockDuration: takeover.lockMs,
    lockRenewTime: Math.min(RENEW_MS, takeover.lockMs / 2),
    stalledInterval: takeover.checkMs,
    // How often a job is tried is counted where clean stops do not count.
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    drainDelay: IDLE_LOOK_S,
    runRetryDelay: AFTER_TROUBLE_MS,
  });
  const once = new LRUCache<string, true>({ max: MAX_REASONS, ttl: QUIET_MS });
  worker.on('error', ({ name, message: reason }) => {
    if (name === 'ReplyError') void rest();
    // It tries again every second.
    if (!once.has(reason)) log.warn({ reason }, 'the job queue is in trouble');
    once.set(reason, true);
  });
  /** The library asks again at once where Redis refuses, as a full one does: 9,000 times a second. */
  async function rest(): Promise<void> {
    if (worker.isPaused()) return;
    await worker.pause(true);
    await delay(AFTER_TROUBLE_MS, undefined, { ref: false });
    if (!isClosing) await worker.resume();
  }

  worker.on('lockRenewalFailed', (ids) => ids.forEach((id) => errands.lose(id)));

  function lookForCancels(): void {
    for (const id of errands.ids()) {
      runs.isCancelAsked(id).then(
        (isAsked) => isAsked && errands.cancel(id),
        (error: unknown) => log.warn({ err: error, job: id }, 'a cancel could not be looked for'),
      );
    }
  }

  function hear(message: Buffer): void {
    const [word, id = ''] = message.toString().split(' ');
    if (word === 'cancel') errands.cancel(id);
  }

  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      timer = setInterval(lookForCancels, LOOK_MS).unref();
      bus.onGap(lookForCancels);
      bus
        .listen(deps.keys.bus, hear)
        // What was asked for in between.
        .then(lookForCancels)
        .catch((error: unknown) => log.error({ err: error }, 'cancels cannot be heard'));
      worker.run().catch((error: unknown) => {
        if (!isClosing) log.fatal({ err: error }, 'the worker has stopped');
      });
    },
    async close() {
      isClosing = true;
      clearInterval(timer);
      const closed = worker.close();
      errands.interruptAll();
      await closed;
    },
  };
}
