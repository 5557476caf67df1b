import { createHash } from 'node:crypto';

/** Where a part of the keys is: they and its channels begin with these texts. */
export type RedisPartition = {
  readonly prefix: string;
  readonly channels: string;
  /** In a cluster its messages are sent by the node that has its keys, and by no other. */
  readonly publish: 'PUBLISH' | 'SPUBLISH';
};

/**
 * The keys of all processes. A Redis Cluster has keys with the same tag (`{…}`) in one place, and a
 * script may touch the keys of one place only: each user's keys have the tag of one of a fixed
 * number of partitions, and the queue's keys have one of their own.
 */
export type RedisPartitions = {
  /** Of keys that stand alone. */
  readonly prefix: string;
  /** Of channels of all processes. */
  readonly channels: string;
  readonly queue: RedisPartition;
  /** Of the users. */
  readonly users: readonly RedisPartition[];
  /** With what all keys begin: those that stand alone, and those of each partition. */
  readonly starts: readonly string[];
  /** Which of them has this user. */
  readonly indexOf: (user: string) => number;
};

/**
 * The tags of the partitions, with slots in equal distances: nodes that have equal ranges of slots
 * have equally many partitions. Stored: with others, users would be looked for where they are not.
 */
const CLUSTER_TAGS = [
  10, 263, 25, 32, 171, 166, 58, 153, 11, 262, 24, 33, 170, 167, 59, 152, 102, 115, 137, 5, 63, 74,
  56, 41, 103, 114, 136, 4, 62, 75, 57, 40,
] as const;

/** The keys with the id of the ledger: in a cluster each partition has one, too, as each may be lost. */
export function ledgerIdKeys({ starts }: Pick<RedisPartitions, 'starts'>): readonly string[] {
  return starts.map((start) => `${start}id`);
}

/** One Redis: no key has a tag. Channels are common to all its databases. */
export function singlePartition(prefix: string, database: number): RedisPartitions {
  // Processes of earlier versions use the first database.
  const channels = database === 0 ? prefix : `${prefix}${database}:`;
  const only: RedisPartition = { prefix, channels, publish: 'PUBLISH' };
  return { ...only, queue: only, users: [only], starts: [prefix], indexOf: () => 0 };
}

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
