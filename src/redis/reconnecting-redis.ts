import { type Command, Redis, type RedisOptions } from 'ioredis';

/** Options of a connection. */
export type ConnectionOptions = Pick<
  RedisOptions,
  'commandTimeout' | 'socketTimeout' | 'autoResubscribe'
>;

const RECONNECT_DELAY_MS = { step: 50, last: 1000 } as const;

/** The delay before the attempt with this number, counted from 1. */
function reconnectDelayMs(attempt: number): number {
  return Math.min(attempt * RECONNECT_DELAY_MS.step, RECONNECT_DELAY_MS.last);
}

/** Commands wait until the connection is open again. */
export const UNLIMITED_RETRIES = {
  maxRetriesPerRequest: null,
  retryStrategy: reconnectDelayMs,
} as const;

/**
 * Options of a connection for messages. A connection that does not answer is closed and opened again; then
 * `RedisSubscriber` subscribes again.
 */
export const SUBSCRIBER_OPTIONS = {
  socketTimeout: 5000,
  autoResubscribe: false,
} as const;

/** A connection to Redis. */
export class ReconnectingRedis extends Redis {
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
