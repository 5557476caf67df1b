import type { RedisConnections } from '../../lib/redis.ts';

/** The Redis keys and channels that all processes share. */
export type QueueKeys = ReturnType<typeof createQueueKeys>;

export function createQueueKeys({
  prefix,
  channels,
}: Pick<RedisConnections, 'prefix' | 'channels'>) {
  const of = (id: string): string => `${prefix}run:${id}`;
  return {
    /** The state of an unfinished job, a hash. */
    run: (id: string): string => of(id),
    /** Its events, a stream. */
    eventStream: (id: string): string => `${of(id)}:events`,
    /** Its latest preview. */
    preview: (id: string): string => `${of(id)}:preview`,
    /** The channel of its events. */
    eventChannel: (id: string): string => `${channels}run:${id}:live`,
    /** The channel for changes of the queue and for cancels. */
    queueChannel: `${channels}queue:bus`,
    /** Waiting jobs, a sorted set. */
    waiting: `${prefix}queue:waiting`,
    /** Prefix before the user's name: the waiting jobs of one user, a sorted set. */
    waitingOf: `${prefix}queue:waiting-of:`,
    /** Users with a waiting job, sorted by turn. */
    userTurns: `${prefix}queue:turns`,
    /** Counter that increases with every change of a turn. */
    turnCounter: `${prefix}queue:turn`,
    /** Jobs that workers have, a hash of job id to user. */
    heldJobs: `${prefix}queue:held`,
    /** The job that a worker took with a ticket. */
    tickets: `${prefix}queue:tickets`,
    /** Prefix before the id of a job: `run`. */
    runPrefix: `${prefix}run:`,
    /** Counter of the jobs that ever entered the queue. */
    entryCounter: `${prefix}queue:entered`,
    /** The highest `order` that ever entered the queue. */
    highestOrder: `${prefix}queue:highest`,
    /** Lock of the process that runs the janitor. */
    janitorLock: `${prefix}queue:upkeep`,
    unrecordedSweep: `${prefix}queue:orphans`,
    nameCounter: (user: string, start: string): string => `${prefix}names:counter:${user}:${start}`,
    nameClaim: (user: string, path: string): string => `${prefix}names:claim:${user}:${path}`,
    /** Announces bytes that were just moved into place and may not have a record yet. */
    pendingBlob: (hash: string): string => `${prefix}adopted:${hash}`,
    /** The id of the ledger; missing when Redis has lost all data. */
    ledgerId: `${prefix}id`,
    /** Prefix of the keys of BullMQ. */
    bullPrefix: `${prefix}bull`,
  };
}
