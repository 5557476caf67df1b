import { createHash } from 'node:crypto';

/** A group of keys and channels that are in one slot of a Redis Cluster. */
export type RedisPartition = {
  /** Each key of the partition begins with this. */
  readonly prefix: string;
  /** Each channel of the partition begins with this. */
  readonly channels: string;
  /** With `SPUBLISH` only the node that has the keys sends the messages. */
  readonly publish: 'PUBLISH' | 'SPUBLISH';
};

/**
 * The prefixes of all keys. A Redis Cluster puts keys with the same tag (`{…}`) into one slot, and a script may use
 * the keys of one slot only. So each user's keys have the tag of one of a fixed number of partitions, and the keys of
 * the queue have a tag of their own.
 */
export type RedisPartitions = {
  /** Each key that belongs to no partition begins with this. */
  readonly prefix: string;
  /** Each channel that belongs to no partition begins with this. */
  readonly channels: string;
  readonly queue: RedisPartition;
  /** The partitions among which users are divided. */
  readonly users: readonly RedisPartition[];
  /** The prefix of keys without a partition, and the prefix of each partition. */
  readonly starts: readonly string[];
  /** The index in `users` of the partition that has this user. */
  readonly indexOf: (user: string) => number;
};

/**
 * Do not change these tags: stored keys contain them. They are the tags of the partitions of users. Their slots have
 * equal distances, so that nodes with equal ranges of slots have equally many partitions.
 */
const CLUSTER_TAGS = [
  10, 263, 25, 32, 171, 166, 58, 153, 11, 262, 24, 33, 170, 167, 59, 152, 102, 115, 137, 5, 63, 74,
  56, 41, 103, 114, 136, 4, 62, 75, 57, 40,
] as const;

/** The keys that store the id of the ledger. In a cluster each partition has one, because a cluster can lose a node's data. */
export function ledgerIdKeys({ starts }: Pick<RedisPartitions, 'starts'>): readonly string[] {
  return starts.map((start) => `${start}id`);
}

/** The partitions of a single Redis: one for all users and the queue, without a tag in its keys. */
export function singlePartition(prefix: string, database: number): RedisPartitions {
  // Channels are common to all databases of a Redis. Database 0 has the channel names of earlier versions.
  const channels = database === 0 ? prefix : `${prefix}${database}:`;
  const only: RedisPartition = { prefix, channels, publish: 'PUBLISH' };
  return { ...only, queue: only, users: [only], starts: [prefix], indexOf: () => 0 };
}

/** The partitions of a Redis Cluster. */
export function clusterPartitions(prefix: string): RedisPartitions {
  const tagged = (tag: string): RedisPartition => {
    const start = `${prefix}{${tag}}:`;
    return { prefix: start, channels: start, publish: 'SPUBLISH' };
  };
  const queue = tagged('queue');
  const users = CLUSTER_TAGS.map((tag) => tagged(String(tag)));
  return {
    prefix,
    channels: prefix,
    queue,
    users,
    starts: [prefix, ...[queue, ...users].map((partition) => partition.prefix)],
    indexOf: (user) =>
      createHash('sha256').update(user).digest().readUInt32BE(0) % CLUSTER_TAGS.length,
  };
}
