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

/** The connections of this process to the Redis, Valkey or Redis Cluster that several processes share. */
export type RedisConnections = ReturnType<typeof openRedis>;

/** How long a call waits while Redis is unreachable. */
export const COMMAND_TIMEOUT_MS = 20_000;

const PREFIX = 'holdover:';

const MAX_NODES = 1000;
/** An unreachable node is logged at most once in this time. */
const LOG_REPEAT_MS = 60_000;

/**
 * Opens `redis://[user:password@]host:port[/db]`, or `rediss://` for TLS. Several hosts, separated by commas, are
 * nodes of one cluster. The password is never logged.
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
    /** The connection for commands that a caller waits for. Each fails after `commandTimeoutMs`. */
    commands,
    /** Opens a separate connection, for example for blocking reads. `close` closes it too. */
    connect,
    /** Opens a connection for the messages of a partition; without one, for messages to all processes. */
    subscriber(partition?: RedisPartition): RedisSubscriber {
      if (!openInCluster)
        return new RedisSubscriber(logged(new ReconnectingRedis(url, SUBSCRIBER_OPTIONS)), log);
      const { redis, isAtOwner } = openInCluster(partition);
      // The connection for commands logs the nodes that are unreachable.
      redis.on('error', () => {});
      opened.add(redis);
      return new RedisSubscriber(redis, log, isAtOwner);
    },
    /** `undefined`: the connections are to a single Redis. */
    cluster,
    partitions,
    /** Each key begins with this. */
    prefix: PREFIX,
    /** Each channel that belongs to no partition begins with this. */
    channels: partitions.channels,
    async close(): Promise<void> {
      for (const redis of opened) redis.disconnect();
      opened.clear();
    },
  };
}

/** Logs each unreachable node, at most once in `LOG_REPEAT_MS`. */
function logNodes(cluster: ReconnectingCluster, log: Logger): void {
  const recentlyLogged = new LRUCache<string, true>({ max: MAX_NODES, ttl: LOG_REPEAT_MS });
  cluster.on('node error', ({ message: reason }: Error, node: string) => {
    // A node that does not answer at the start is logged by `checkNamedNodes`.
    if (cluster.status !== 'ready' || recentlyLogged.has(node)) return;
    recentlyLogged.set(node, true);
    const event = 'redis.node_unreachable';
    log.warn({ event, node, reason }, 'a node of the Redis Cluster cannot be reached');
  });
}

/** The single Redis, or the nodes of the cluster. `master`: only the nodes that serve keys, not their replicas. */
export async function nodesOf(
  { cluster, commands }: Pick<RedisConnections, 'cluster' | 'commands'>,
  role: 'all' | 'master',
): Promise<readonly IoRedis[]> {
  if (!cluster) return [commands];
  // Before its first reply the client does not know the nodes.
  if (cluster.status !== 'ready') await commands.ping();
  return cluster.nodes(role);
}

/** Calls `ask` for the single Redis, or for each node of the cluster; rejects when one call rejects. */
export async function askNodes<Reply>(
  links: Pick<RedisConnections, 'cluster' | 'commands'>,
  ask: (node: IoRedis) => Promise<Reply>,
): Promise<readonly Reply[]> {
  return Promise.all((await nodesOf(links, 'all')).map(ask));
}

/** The number of connections that are subscribed to a channel, over all nodes. */
export async function countSubscribers(
  links: Pick<RedisConnections, 'cluster' | 'commands'>,
  channel: string,
): Promise<number> {
  const replies = await askNodes(links, (node) => node.pubsub('NUMSUB', channel).catch(() => []));
  return replies.reduce<number>((sum, reply) => sum + Number((reply as unknown[])[1] ?? 0), 0);
}

/**
 * Options: a command fails after `timeoutMs`. A connection that is silent for half of it while commands wait is
 * closed and opened again, and its unanswered commands are sent again.
 */
export function withTimeouts(
  timeoutMs: number,
): Pick<ConnectionOptions, 'commandTimeout' | 'socketTimeout'> {
  return { commandTimeout: timeoutMs, socketTimeout: timeoutMs / 2 };
}
