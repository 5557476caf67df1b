import type { Redis as IoRedis } from 'ioredis';
import { LRUCache } from 'lru-cache';
import type { Logger } from '../observability/log.ts';
import { ReconnectingCluster } from './redis-cluster.ts';
import { clusterSubscribers } from './cluster-subscribers.ts';
import {
  type ConnectionOptions,
  ReconnectingRedis,
  SUBSCRIBER_OPTIONS,
  UNLIMITED_RETRIES,
} from './reconnecting-redis.ts';
import { type RedisPartition, clusterPartitions, singlePartition } from './redis-partitions.ts';
import { RedisSubscriber } from './redis-subscriber.ts';
import { ReplicatedWrites } from './replicated-writes.ts';
import { splitHosts } from '../config/redis-hosts.ts';

export type { Redis } from 'ioredis';

/** Connections to the Redis or Valkey, or to the cluster of them, that several processes share. */
export type RedisConnections = ReturnType<typeof openRedis>;

/** How long a call waits for an unavailable Redis, in milliseconds. */
export const COMMAND_TIMEOUT_MS = 20_000;

const PREFIX = 'holdover:';

const MAX_NODES = 1000;
const COMPLAIN_EVERY_MS = 60_000;

/**
 * Opens `redis://[user:password@]host:port[/db]`, or `rediss://`; with several hosts, between
 * commas, the cluster that they are nodes of. The password is never logged.
 */
export function openRedis(
  url: string,
  {
    log,
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
  }: { readonly log: Logger; readonly commandTimeoutMs?: number },
) {
  const opened = new Set<IoRedis>();
  const isCluster = splitHosts(url).hosts.length > 1;
  const writes = new ReplicatedWrites(log);

  function logged(redis: IoRedis): IoRedis {
    let isDisconnected = false;
    redis.on('ready', () => (isDisconnected = false));
    redis.on('error', (error: NodeJS.ErrnoException) => {
      if (!isDisconnected)
        log.warn(
          { event: 'redis.unreachable', reason: error.message || error.code },
          'Redis cannot be reached',
        );
      isDisconnected = true;
    });
    opened.add(redis);
    return redis;
  }

  function connect(options: ConnectionOptions = {}): IoRedis {
    if (isCluster) {
      return logged(new ReconnectingCluster(url, options, writes) as unknown as IoRedis);
    }
    return logged(new ReconnectingRedis(url, { ...UNLIMITED_RETRIES, ...options }));
  }

  const commands = connect(withTimeouts(commandTimeoutMs));
  const cluster = isCluster ? (commands as unknown as ReconnectingCluster) : undefined;
  const partitions = cluster
    ? clusterPartitions(PREFIX)
    : singlePartition(PREFIX, commands.options.db ?? 0);
  const openInCluster = cluster && clusterSubscribers(cluster, url);
  if (cluster) logNodes(cluster, log);
  return {
    /**
     * For commands with a waiting caller: while the connection is down they wait this long and no
     * longer.
     */
    commands,
    /** A connection of one's own, for blocking reads; closed with the others. */
    connect,
    /** A connection for messages to all processes, or for those about the keys of a partition. */
    subscriber(partition?: RedisPartition): RedisSubscriber {
      if (!openInCluster)
        return new RedisSubscriber(logged(new ReconnectingRedis(url, SUBSCRIBER_OPTIONS)), log);
      const { redis, isAtOwner } = openInCluster(partition);
      // The connection for commands reports the nodes that are away.
      redis.on('error', () => {});
      opened.add(redis);
      return new RedisSubscriber(redis, log, isAtOwner);
    },
    /** The cluster that the connections are to. */
    cluster,
    /** Where keys are, and with what they and the channels begin. */
    partitions,
    /** Every key begins with this. */
    prefix: PREFIX,
    /** Every channel begins with this. */
    channels: partitions.channels,
    async close(): Promise<void> {
      for (const redis of opened) redis.disconnect();
      opened.clear();
    },
  };
}

/** A node that is away is complained of once in a while. */
function logNodes(cluster: ReconnectingCluster, log: Logger): void {
  const complained = new LRUCache<string, true>({ max: MAX_NODES, ttl: COMPLAIN_EVERY_MS });
  cluster.on('node error', ({ message: reason }: Error, node: string) => {
    // Those that do not answer at the start were complained of before.
    if (cluster.status !== 'ready' || complained.has(node)) return;
    complained.set(node, true);
    const event = 'redis.node_unreachable';
    log.warn({ event, node, reason }, 'a node of the Redis Cluster cannot be reached');
  });
}

/** The one Redis, or the nodes of the cluster. `master`: those that have keys. */
export async function nodesOf(
  { cluster, commands }: Pick<RedisConnections, 'cluster' | 'commands'>,
  role: 'all' | 'master',
): Promise<readonly IoRedis[]> {
  if (!cluster) return [commands];
  // Until then it does not know them.
  if (cluster.status !== 'ready') await commands.ping();
  return cluster.nodes(role);
}

/** Asks the one Redis, or every node of the cluster; rejects when one does not answer. */
export async function askNodes<Reply>(
  links: Pick<RedisConnections, 'cluster' | 'commands'>,
  ask: (node: IoRedis) => Promise<Reply>,
): Promise<readonly Reply[]> {
  return Promise.all((await nodesOf(links, 'all')).map(ask));
}

/** How many connections listen to a channel; each node of a cluster counts its own. */
export async function countSubscribers(
  links: Pick<RedisConnections, 'cluster' | 'commands'>,
  channel: string,
): Promise<number> {
  const replies = await askNodes(links, (node) => node.pubsub('NUMSUB', channel).catch(() => []));
  return replies.reduce<number>((sum, reply) => sum + Number((reply as unknown[])[1] ?? 0), 0);
}

/**
 * A connection that is silent for half of this time is closed, and its unanswered commands are sent
 * again.
 */
export function withTimeouts(
  timeoutMs: number,
): Pick<ConnectionOptions, 'commandTimeout' | 'socketTimeout'> {
  return { commandTimeout: timeoutMs, socketTimeout: timeoutMs / 2 };
}
