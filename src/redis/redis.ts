import { Redis, type Command, type RedisOptions } from 'ioredis';
import type { Logger } from '../observability/log.ts';
import { RedisSubscriber } from './redis-subscriber.ts';

/** Options of a connection. */
type ConnectionOptions = Pick<RedisOptions, 'commandTimeout' | 'socketTimeout' | 'autoResubscribe'>;

/** Commands wait until the connection is open again. */
const UNLIMITED_RETRIES = {
  maxRetriesPerRequest: null,
  /** The delay in milliseconds before an attempt, which are counted from 1. */
  retryStrategy: (attempt: number): number => Math.min(attempt * 50, 1000),
} as const;

/**
 * Options of a connection for messages. A connection that does not answer is closed and opened again; then
 * `RedisSubscriber` subscribes again.
 */
const SUBSCRIBER_OPTIONS = {
  socketTimeout: 5000,
  autoResubscribe: false,
} as const;

/** A connection to Redis. */
class ReconnectingRedis extends Redis {
  override sendCommand(command: Command, ...more: [stream?: never]): unknown {
    // ioredis would send a command that has timed out when Redis is reachable again.
    if (command.isSettled) return command.promise;
    const reply = super.sendCommand(command, ...more);
    // When Redis refuses the selected database, ioredis continues in database 0. Disconnect, so that the waiting
    // commands are not sent there.
    if (command.name === 'select') {
      command.promise.catch(({ name }: Error) => name === 'ReplyError' && this.disconnect(true));
    }
    return reply;
  }

  /** BullMQ calls this to open connections of its own. */
  override duplicate<Given extends Partial<RedisOptions> | undefined = undefined>(
    overrides?: Given,
  ): ReturnType<typeof Redis.prototype.duplicate<Given>> {
    const options = { ...this.options, ...overrides } as RedisOptions & { replyMapping?: 'legacy' };
    return new ReconnectingRedis(options) as Redis as ReturnType<typeof this.duplicate<Given>>;
  }
}

export type { Redis } from 'ioredis';

export type RedisNames = {
  /** Each key begins with this. */
  readonly prefix: string;
  /** Each channel begins with this. */
  readonly channels: string;
};

/** The connections of this process to the Redis or Valkey that several processes share. */
export type RedisConnections = RedisNames & {
  /** The connection for commands that a caller waits for. Each fails after `commandTimeoutMs`. */
  readonly commands: Redis;
  /** Opens a separate connection, for example for blocking reads. `close` closes it too. */
  readonly connect: (options?: ConnectionOptions) => Redis;
  /** Opens a connection for messages. */
  readonly subscriber: () => RedisSubscriber;
  readonly close: () => Promise<void>;
};

/** How long a call waits while Redis is unreachable. */
export const COMMAND_TIMEOUT_MS = 20_000;

const PREFIX = 'holdover:';

/**
 * Opens `redis://[user:password@]host:port[/db]`, or `rediss://` for TLS. The password is never logged.
 */
export function openRedis(
  url: string,
  {
    log,
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
  }: { readonly log: Logger; readonly commandTimeoutMs?: number },
): RedisConnections {
  const opened = new Set<Redis>();

  function connect(options: ConnectionOptions = {}): Redis {
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

  const commands = connect(withTimeouts(commandTimeoutMs));
  const database = commands.options.db ?? 0;
  return {
    commands,
    connect,
    subscriber: () => new RedisSubscriber(connect(SUBSCRIBER_OPTIONS), log),
    prefix: PREFIX,
    // Channels are common to all databases of a Redis. Database 0 has the channel names of earlier versions.
    channels: database === 0 ? PREFIX : `${PREFIX}${database}:`,
    async close(): Promise<void> {
      for (const redis of opened) redis.disconnect();
      opened.clear();
    },
  };
}

/** The number of connections that are subscribed to a channel. */
export async function countSubscribers(
  { commands }: RedisConnections,
  channel: string,
): Promise<number> {
  const [, count = 0] = (await commands.pubsub('NUMSUB', channel)) as unknown[];
  return Number(count);
}

/**
 * Options: a command fails after `timeoutMs`. A connection that is silent for half of it while commands wait is
 * closed and opened again, and its unanswered commands are sent again.
 */
export function withTimeouts(timeoutMs: number): ConnectionOptions {
  return { commandTimeout: timeoutMs, socketTimeout: timeoutMs / 2 };
}
