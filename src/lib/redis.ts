import { type Command, Redis as IoRedis, type RedisOptions } from 'ioredis';
import type { Logger } from '../observability/log.ts';

export type { Redis } from 'ioredis';

type ConnectionOptions = Pick<
  RedisOptions,
  'enableReadyCheck' | 'maxRetriesPerRequest' | 'commandTimeout' | 'socketTimeout'
>;

/** Connections to the one Redis (or Valkey) that several processes share. */
export type RedisConnections = ReturnType<typeof openRedis>;

class ReconnectingRedis extends IoRedis {
  override sendCommand(command: Command, ...more: [stream?: never]): unknown {
    // The library sends a command that timed out all the same, once Redis is back.
    if (command.isSettled) return command.promise;
    const reply = super.sendCommand(command, ...more);
    // When the selected database is refused, the library continues in another one: waiting commands
    // are not sent there.
    if (command.name === 'select') {
      command.promise.catch(({ name }: Error) => name === 'ReplyError' && this.disconnect(true));
    }
    return reply;
  }

  /** The queue's library takes connections of its own this way. */
  override duplicate<Given extends Partial<RedisOptions> | undefined = undefined>(
    overrides?: Given,
  ): ReturnType<typeof IoRedis.prototype.duplicate<Given>> {
    const options = { ...this.options, ...overrides } as RedisOptions & { replyMapping?: 'legacy' };
    return new ReconnectingRedis(options) as IoRedis as ReturnType<typeof this.duplicate<Given>>;
  }
}

/** How long a call waits for an unavailable Redis, in milliseconds. */
export const COMMAND_TIMEOUT_MS = 20_000;

const RECONNECT_DELAY_MS = { step: 50, last: 1000 } as const;

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
    const redis = new ReconnectingRedis(url, {
      maxRetriesPerRequest: null,
      retryStrategy: (times) => Math.min(times * RECONNECT_DELAY_MS.step, RECONNECT_DELAY_MS.last),
      ...options,
    });
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
