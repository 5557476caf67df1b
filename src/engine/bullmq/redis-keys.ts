import type { RedisNames } from '../../redis/redis.ts';

/** The queue's name in the keys of BullMQ. */
export const QUEUE_NAME = 'queued-jobs';

/** The Redis keys and channels that all processes share. */
export type QueueKeys = ReturnType<typeof createQueueKeys>;

/** Makes the keys and channels of the queue and its jobs. */
export function createQueueKeys({ prefix, channels }: RedisNames) {
  const run = (id: string): string => `${prefix}run:${id}`;
  const bullPrefix = `${prefix}bull`;
  const ofBull = `${bullPrefix}:${QUEUE_NAME}:`;
  return {
    /** Each key begins with this. */
    prefix,
    /** The state of an unfinished job, a hash. */
    run,
    /** The events of an unfinished job, a stream. */
    eventStream: (id: string): string => `${run(id)}:events`,
    /** The channel of the events of a job. */
    eventChannel: (id: string): string => `${channels}run:${id}:live`,
    /** The channel on which a worker gets the ids of jobs to cancel. */
    cancelChannel: (worker: string): string => `${channels}run:${worker}:cancel`,
    /** The prefix of both channels, before the id of a job or worker. */
    runChannels: `${channels}run:`,
    /** The highest `order` that ever entered the queue. */
    highestOrder: `${prefix}queue:highest`,
    /** Exists while the next removal of bytes without a record is not due. */
    unrecordedSweep: `${prefix}queue:orphans`,
    /** The last number in the names of a user's files that begin with `start`. */
    nameCounter: (user: string, start: string): string => `${prefix}names:counter:${user}:${start}`,
    /** Reserves the path of a user's file until its record is written. */
    nameClaim: (user: string, path: string): string => `${prefix}names:claim:${user}:${path}`,
    /** Exists for bytes that were just moved into place and may have no record yet. */
    pendingBlob: (hash: string): string => `${prefix}adopted:${hash}`,
    /** The id of the ledger. It is missing when Redis has lost its data. */
    ledgerId: `${prefix}id`,
    /** The prefix of all keys of BullMQ. */
    bullPrefix,
    /** The prefix of the keys of BullMQ's jobs, before the id. */
    ofBull,
    /** BullMQ's waiting jobs, a sorted set. */
    waiting: `${ofBull}prioritized`,
  };
}
