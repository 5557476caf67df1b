import { randomInt } from 'node:crypto';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { AbstractConnector, type Cluster, Command, type RedisOptions } from 'ioredis';
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
  const named = redisNodes(url);
  const access = accessOf(url);
  const slots = new ClusterSlots(cluster);
  cluster.once('ready', () => void slots.refresh());

  return (partition: RedisPartition | undefined) => {
    const anyNode = inTurn(() => knownNodes(cluster, named));
    const open = (nextNode: () => RedisNode): ReconnectingRedis => {
      const Connector = connectorTo(nextNode, access);
      return new ReconnectingRedis({ ...access, ...SUBSCRIBER_OPTIONS, Connector });
    };
    if (!partition) return { redis: open(anyNode) };
    const slot = slotOf(partition.prefix);
    let node: RedisNode | undefined;
    const redis = open(() => (node = slots.ownerOf(slot) ?? anyNode()));
    redis.on('close', () => void slots.refresh());
    const isAtOwner = async (): Promise<boolean> => {
      await slots.refresh();
      const owner = slots.ownerOf(slot);
      return owner?.host === node?.host && owner?.port === node?.port;
    };
    return { redis, isAtOwner };
  };
}

type SlotRange = { readonly from: number; readonly to: number; readonly node: RedisNode };

/** Which node has which slots, as the cluster last said it. */
class ClusterSlots {
  readonly #cluster: Cluster;
  #ranges: readonly SlotRange[] = [];
  #refreshing: Promise<void> | undefined;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Asks the cluster; without an answer the last one stays. */
  refresh(): Promise<void> {
    return (this.#refreshing ??= this.#read()
      .catch(ignoreError)
      .finally(() => (this.#refreshing = undefined)));
  }

  ownerOf(slot: number): RedisNode | undefined {
    return this.#ranges.find(({ from, to }) => from <= slot && slot <= to)?.node;
  }

  async #read(): Promise<void> {
    const ranges = await this.#cluster.cluster('SLOTS');
    this.#ranges = ranges.flatMap(([from, to, [host, port] = ['', 0]]) =>
      // A node may not know its own address.
      host === '' ? [] : [{ from, to, node: { host, port } }],
    );
  }
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

/** The nodes that a cluster is known to have; the named ones until it has said so. */
function knownNodes(cluster: Cluster, named: readonly RedisNode[]): readonly RedisNode[] {
  const known = cluster
    .nodes('all')
    .flatMap(({ options: { host, port } }) =>
      host !== undefined && port !== undefined ? [{ host, port }] : [],
    );
  return known.length > 0 ? known : named;
}

function slotOf(key: string): number {
  return new Command('get', [key]).getSlot();
}

function ignoreError(): void {}
