import { type RedisPartitions, ledgerIdKeys } from '../../redis/redis-partitions.ts';

/** The queue's name in the keys of BullMQ. */
export const QUEUE_NAME = 'queued-jobs';

/** The Redis keys and channels that all processes share. */
export type QueueKeys = ReturnType<typeof createQueueKeys>;

export function createQueueKeys({
  queue: { prefix, channels, publish },
  starts,
}: Pick<RedisPartitions, 'queue' | 'starts'>) {
  const run = (id: string): string => `${prefix}run:${id}`;
  const bullPrefix = `${prefix}bull`;
  const ofBull = `${bullPrefix}:${QUEUE_NAME}:`;
  return {
    /** Every key begins with this. */
    prefix,
    /** The state of an unfinished job, a hash. */
    run,
    /** Its events, a stream. */
    eventStream: (id: string): string => `${run(id)}:events`,
    /** The channel of its events. */
    eventChannel: (id: string): string => `${channels}run:${id}:live`,
    /** The channel of requests to cancel a job that a worker runs. */
    cancelChannel: (worker: string): string => `${channels}run:${worker}:cancel`,
    /** Prefix of both, before the id of a job or worker. */
    runChannels: `${channels}run:`,
    /** The command that publishes there. */
    publish,
    /** The highest `order` that ever entered the queue. */
    highestOrder: `${prefix}queue:highest`,
    unrecordedSweep: `${prefix}queue:orphans`,
    nameCounter: (user: string, start: string): string => `${prefix}names:counter:${user}:${start}`,
    nameClaim: (user: string, path: string): string => `${prefix}names:claim:${user}:${path}`,
    /** Announces bytes that were just moved into place and may not have a record yet. */
    pendingBlob: (hash: string): string => `${prefix}adopted:${hash}`,
    /** The id of the ledger, in each partition; missing in one that has lost its data. */
    ledgerIds: ledgerIdKeys({ starts }),
    /** Prefix of the keys of BullMQ. */
    bullPrefix,
    /** Prefix of the keys of BullMQ's jobs, before the id. */
    ofBull,
    /** BullMQ's waiting jobs, a sorted set. */
    waiting: `${ofBull}prioritized`,
  };
}
