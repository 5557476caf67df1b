import { randomInt } from 'node:crypto';
import { type Cluster, Command, type Redis } from 'ioredis';
import { type RedisNode, redisNodes } from '../config/redis-hosts.ts';
import { ReconnectingRedis, SUBSCRIBER_OPTIONS } from './reconnecting-redis.ts';
import { accessOf } from './redis-cluster.ts';
import type { RedisPartition } from './redis-partitions.ts';

/**
 * Returns a function that opens a connection for messages. The messages of a partition are published only at the
 * node that has its keys, so the connection is to that node. Without a partition it is to any node.
 */
export function clusterSubscribers(cluster: Cluster, url: string) {
  const access = accessOf(url);
  const knownNodes = (): readonly RedisNode[] => cluster.nodes('all').flatMap(nodeOf);
  const refresh = (): Promise<void> =>
    new Promise((resolve) => cluster.refreshSlotsCache(() => resolve()));
  const ownerOf = (slot: number): RedisNode | undefined => {
    const owner = cluster.slots[slot]?.[0];
    return knownNodes().find(({ host, port }) => `${host}:${port}` === owner);
  };

  return (partition: RedisPartition | undefined) => {
    const anyNode = roundRobin(() => (knownNodes().length > 0 ? knownNodes() : redisNodes(url)));
    if (!partition) return { redis: connectToEach(anyNode, access) };
    const slot = slotOf(partition.prefix);
    let node: RedisNode | undefined;
    const redis = connectToEach(() => (node = ownerOf(slot) ?? anyNode()), access);
    redis.on('close', () => void refresh());
    const isAtOwner = async (): Promise<boolean> => {
      await refresh();
      const owner = ownerOf(slot);
      return !owner || (owner.host === node?.host && owner.port === node.port);
    };
    return { redis, isAtOwner };
  };
}

/** A connection that chooses its node each time it connects. */
function connectToEach(
  nextNode: () => RedisNode,
  access: ReturnType<typeof accessOf>,
): ReconnectingRedis {
  const Connection = class extends ReconnectingRedis {
    override connect(...args: Parameters<ReconnectingRedis['connect']>): Promise<void> {
      Object.assign(this.options, nextNode());
      return super.connect(...args);
    }
  };
  return new Connection({ ...access, ...SUBSCRIBER_OPTIONS });
}

function roundRobin(nodes: () => readonly RedisNode[]): () => RedisNode {
  let next = randomInt(2 ** 16);
  return () => {
    const all = nodes();
    const node = all[next++ % all.length];
    if (!node) throw new Error('the cluster has no nodes');
    return node;
  };
}

function nodeOf({ options: { host, port } }: Redis): RedisNode[] {
  return host === undefined || port === undefined ? [] : [{ host, port }];
}

function slotOf(key: string): number {
  return new Command('get', [key]).getSlot();
}
