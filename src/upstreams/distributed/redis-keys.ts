import type { RedisConnections } from '../../lib/redis.ts';

/** What the processes of one Redis share, by name. */
export type QueueKeys = ReturnType<typeof createQueueKeys>;

export function createQueueKeys({
  prefix,
  channels,
}: Pick<RedisConnections, 'prefix' | 'channels'>) {
  const of = (id: string): string => `${prefix}run:${id}`;
  return {
    /** How a job that is not over stands, as a hash. */
    run: (id: string): string => of(id),
    /** What it told, as a stream. */
    eventStream: (id: string): string => `${of(id)}:events`,
    /** Its latest preview. */
    preview: (id: string): string => `${of(id)}:preview`,
    /** Where its events are published. */
    eventChannel: (id: string): string => `${channels}run:${id}:live`,
    /** Where is published that the queue moved, or that a job shall stop. */
    pubsub: `${channels}queue:bus`,
    /** Waiting jobs in the order they will run in. */
    waiting: `${prefix}queue:waiting`,
    /** Before the user's name: the waiting jobs of one user, in the same order. */
    waitingOf: `${prefix}queue:waiting-of:`,
    /** Users who have a job waiting, by whose turn it is. */
    userTurns: `${prefix}queue:turns`,
    /** Counts on with every change of a turn. */
    turnCounter: `${prefix}queue:turn`,
    /** Jobs that workers have, with their users. */
    heldJobs: `${prefix}queue:held`,
    /** The job a worker has by a ticket. */
    ticketQueue: `${prefix}queue:tickets`,
    /** Before the id of a job: `run`. */
    runState: `${prefix}run:`,
    /** Jobs that ever entered the queue. */
    entryCounter: `${prefix}queue:entered`,
    /** The highest `order` that ever entered it. */
    highestOrder: `${prefix}queue:highest`,
    /** Held by the one process that clears up. */
    janitor: `${prefix}queue:upkeep`,
    unrecordedSweep: `${prefix}queue:orphans`,
    nameCounter: (user: string, start: string): string => `${prefix}names:counter:${user}:${start}`,
    nameClaim: (user: string, path: string): string => `${prefix}names:claim:${user}:${path}`,
    /** Bytes that have just come to their place and may not be recorded yet. */
    pendingBlob: (hash: string): string => `${prefix}adopted:${hash}`,
    /** Whose data these are; gone when Redis has lost them all. */
    ledgerId: `${prefix}id`,
    /** Before the keys of the queue's library. */
    bullPrefix: `${prefix}bull`,
  };
}
