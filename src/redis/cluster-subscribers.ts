import { randomInt } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type Cluster, Command, type Redis, type RedisOptions } from 'ioredis';
import { type RedisNode, redisNodes } from '../config/redis-hosts.ts';
import { ReconnectingRedis, SUBSCRIBER_OPTIONS } from './reconnecting-redis.ts';
import { accessOf } from './redis-cluster.ts';
import type { RedisPartition } from './redis-partitions.ts';

const DISCONNECT_TIMEOUT_MS = 2000;

/**
 * Opens connections for messages. Those of a partition come from the node that has its keys, and
 * are sent to no other; those for all processes come from any node.
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
    const anyNode = inTurn(() => (knownNodes().length > 0 ? knownNodes() : redisNodes(url)));
    const open = (nextNode: () => RedisNode): ReconnectingRedis => {
      const Connector = connectorTo(nextNode, access);
      return new ReconnectingRedis({ ...access, ...SUBSCRIBER_OPTIONS, Connector });
    };
    if (!partition) return { redis: open(anyNode) };
    const slot = slotOf(partition.prefix);
    let node: RedisNode | undefined;
    const redis = open(() => (node = ownerOf(slot) ?? anyNode()));
    redis.on('close', () => void refresh());
    const isAtOwner = async (): Promise<boolean> => {
      await refresh();
      const owner = ownerOf(slot);
      return !owner || (owner.host === node?.host && owner.port === node.port);
    };
    return { redis, isAtOwner };
  };
}

/** Of a connection whose node is chosen anew each time it connects. */
function connectorTo(nextNode: () => RedisNode, { tls }: Pick<RedisOptions, 'tls'>) {
  return class extends AbstractConnector {
    constructor() {
      super(DISCONNECT_TIMEOUT_MS);
    }

    override async connect() {
      this.connecting = true;
      const { host, port } = nextNode();
      const stream = tls ? connectTls({ ...tls, host, port }) : connectTcp({ host, port });
      stream.once('error', (error) => (this.firstError = error));
      this.stream = stream;
      return stream;
    }
  };
}

function inTurn(nodes: () => readonly RedisNode[]): () => RedisNode {
  let turn = randomInt(2 ** 16);
  return () => {
    const all = nodes();
    const node = all[turn++ % all.length];
    if (!node) throw new Error('a cluster has no nodes');
    return node;
  };
}

function nodeOf({ options: { host, port } }: Redis): RedisNode[] {
  return host === undefined || port === undefined ? [] : [{ host, port }];
}

function slotOf(key: string): number {
  return new Command('get', [key]).getSlot();
}
