import type { Redis as IoRedis } from 'ioredis';
import type { Logger } from '../observability/log.ts';
import {
  type ConnectionOptions,
  ReconnectingRedis,
  UNLIMITED_RETRIES,
} from './reconnecting-redis.ts';

export type { Redis } from 'ioredis';

/** Connections to the one Redis (or Valkey) that several processes share. */
export type RedisConnections = ReturnType<typeof openRedis>;

/** How long a call waits for an unavailable Redis, in milliseconds. */
export const COMMAND_TIMEOUT_MS = 20_000;

/** Opens `redis://[user:password@]host:port[/db]`, or `rediss://`; the password is never logged. */
export function openRedis(
  url: string,
  {
    log,
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
  }: { readonly log: Logger; readonly commandTimeoutMs?: number },
) {
  const opened = new Set<IoRedis>();

  function connect(options: ConnectionOptions = {}): IoRedis {
    const redis = new ReconnectingRedis(url, { ...UNLIMITED_RETRIES, ...options });
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

  const prefix = 'holdover:';
  const commands = connect(withTimeouts(commandTimeoutMs));
  const { db = 0 } = commands.options;
  return {
    /**
     * For commands with a waiting caller: while the connection is down they wait this long and no
     * longer.
     */
    commands,
    /** A connection of one's own, for subscriptions and blocking reads; closed with the others. */
    connect,
    /** Every key begins with this. */
    prefix,
    /**
     * Every channel begins with this: Redis has them in common for all its databases. Processes of
     * earlier versions use the first database.
     */
    channels: db === 0 ? prefix : `${prefix}${db}:`,
    async close(): Promise<void> {
      for (const redis of opened) redis.disconnect();
      opened.clear();
    },
  };
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
