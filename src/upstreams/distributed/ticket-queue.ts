import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import type { Redis } from '../../lib/redis.ts';
import type { Logger } from '../../observability/log.ts';
import type { QueueKeys } from './redis-keys.ts';

/** The queue's name in the library's keys. */
export const QUEUE_NAME = 'jobs';
/** Between the library's prefix and the id in the key of a ticket. */
export const TICKET_KEY = `:${QUEUE_NAME}:`;
/** The library's own log, which nobody reads. */
const MAX_LOGGED_EVENTS = 100;

type QueuedJob = { readonly id: string };

/**
 * Tickets that workers take: each is the right to run one job, whichever it is then (`runs.take`). There are
 * at least as many as waiting jobs, one with the id of each.
 */
export type TicketQueue = {
  /** Does nothing for a job that has one. */
  add(jobs: readonly QueuedJob[]): Promise<void>;
  /** Adds as many as are missing for so many waiting jobs: that of a job may be with a worker for another. */
  fill(waiting: number): Promise<void>;
  /** True when it could be taken out: not when a living worker has it. */
  remove(id: string): Promise<boolean>;
  close(): Promise<void>;
};

export function createTicketQueue(deps: {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly log: Logger;
}): TicketQueue {
  const queue = new Queue(QUEUE_NAME, {
    connection: deps.redis,
    prefix: deps.keys.bullPrefix,
    streams: { events: { maxLen: MAX_LOGGED_EVENTS } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  queue.on('error', (error) => deps.log.debug({ err: error }, 'the queue reports an error'));
  const add = async (jobs: readonly QueuedJob[]): Promise<void> => {
    await queue.addBulk(jobs.map(({ id }) => ({ name: 'job', data: {}, opts: { jobId: id } })));
  };
  return {
    add,
    async fill(waiting) {
      const missing = waiting - (await queue.getWaitingCount());
      if (missing > 0) await add(Array.from({ length: missing }, () => ({ id: randomUUID() })));
    },
    remove: async (id) => (await queue.remove(id)) === 1,
    close: () => queue.close(),
  };
}
