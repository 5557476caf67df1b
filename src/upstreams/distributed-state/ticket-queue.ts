import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import type { Redis } from '../../lib/redis.ts';
import type { Logger } from '../../observability/log.ts';
import type { QueueKeys } from './redis-keys.ts';

/** The queue's name in the keys of BullMQ. */
export const QUEUE_NAME = 'jobs';
/** Between the prefix of BullMQ and the id in the key of a ticket. */
export const TICKET_KEY = `:${QUEUE_NAME}:`;
/** Length of BullMQ's own event log, which is never read. */
const MAX_LOGGED_EVENTS = 100;

type QueuedJob = { readonly id: string };

/**
 * Tickets that workers take, which are the jobs of BullMQ. Each is the right to run one job;
 * `RunStateStore.take` decides which. There are at least as many as waiting jobs, one with the id
 * of each.
 */
export type TicketQueue = ReturnType<typeof createTicketQueue>;

export function createTicketQueue(deps: {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly log: Logger;
}) {
  const queue = new Queue(QUEUE_NAME, {
    connection: deps.redis,
    prefix: deps.keys.bullPrefix,
    streams: { events: { maxLen: MAX_LOGGED_EVENTS } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  queue.on('error', (error) =>
    deps.log.debug({ event: 'queue.error', err: error }, 'BullMQ reports an error'),
  );
  const add = async (jobs: readonly QueuedJob[]): Promise<void> => {
    await queue.addBulk(jobs.map(({ id }) => ({ name: 'job', data: {}, opts: { jobId: id } })));
  };
  return {
    /** Adds a ticket for each job; does nothing for a job that has one. */
    add,
    /**
     * Adds the tickets that are missing for this many waiting jobs: a worker may have used the ticket
     * of one job for another.
     */
    async fill(waiting: number): Promise<void> {
      const missing = waiting - (await queue.getWaitingCount());
      if (missing > 0) await add(Array.from({ length: missing }, () => ({ id: randomUUID() })));
    },
    /** True when the ticket was removed; false when a live worker has it. */
    remove: async (id: string): Promise<boolean> => (await queue.remove(id)) === 1,
    close: (): Promise<void> => queue.close(),
  };
}
