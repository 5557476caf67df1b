import type { RedisNames } from '../../redis/redis.ts';

/** The queue's name in the keys of BullMQ. */
export const QUEUE_NAME = 'queued-jobs';

/** The Redis keys and channels of the queue and its jobs, which all processes share. */
export class QueueKeys {
  /** Each key begins with this. */
  readonly prefix: string;
  /** The prefix of the channels of jobs and workers, before the id of one. */
  readonly runChannels: string;
  /** The prefix of all keys of BullMQ. */
  readonly bullPrefix: string;
  /** The prefix of the keys of BullMQ's jobs, before the id. */
  readonly ofBull: string;
  /** BullMQ's waiting jobs, a sorted set. */
  readonly waiting: string;
  /** The highest `order` that ever entered the queue. */
  readonly highestOrder: string;
  /** Exists while the next removal of bytes without a record is not due. */
  readonly unrecordedSweep: string;
  /** The id of the ledger. It is missing when Redis has lost its data. */
  readonly ledgerId: string;

  constructor({ prefix, channels }: RedisNames) {
    this.prefix = prefix;
    this.runChannels = `${channels}run:`;
    this.bullPrefix = `${prefix}bull`;
    this.ofBull = `${this.bullPrefix}:${QUEUE_NAME}:`;
    this.waiting = `${this.ofBull}prioritized`;
    this.highestOrder = `${prefix}queue:highest`;
    this.unrecordedSweep = `${prefix}queue:orphans`;
    this.ledgerId = `${prefix}id`;
  }

  /** The state of an unfinished job, a hash. */
  readonly run = (id: string): string => `${this.prefix}run:${id}`;
  /** The events of an unfinished job, a stream. */
  readonly eventStream = (id: string): string => `${this.run(id)}:events`;
  /** The channel of the events of a job. */
  readonly eventChannel = (id: string): string => `${this.runChannels}${id}:live`;
  /** The channel on which a worker gets the ids of jobs to cancel. */
  readonly cancelChannel = (worker: string): string => `${this.runChannels}${worker}:cancel`;
  /** The last number in the names of a user's files that begin with `start`. */
  readonly nameCounter = (user: string, start: string): string =>
    `${this.prefix}names:counter:${user}:${start}`;
  /** Reserves the path of a user's file until its record is written. */
  readonly nameClaim = (user: string, path: string): string =>
    `${this.prefix}names:claim:${user}:${path}`;
  /** Exists for bytes that were just moved into place and may have no record yet. */
  readonly pendingBlob = (hash: string): string => `${this.prefix}adopted:${hash}`;
}
