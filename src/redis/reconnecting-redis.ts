import { type Command, Redis, type RedisOptions } from 'ioredis';

/** Options of a connection to one Redis, and to each node of a cluster. */
export type ConnectionOptions = Pick<
  RedisOptions,
  'enableReadyCheck' | 'maxRetriesPerRequest' | 'commandTimeout' | 'socketTimeout'
>;

const RECONNECT_DELAY_MS = { step: 50, last: 1000 } as const;

export function reconnectDelayMs(times: number): number {
  return Math.min(times * RECONNECT_DELAY_MS.step, RECONNECT_DELAY_MS.last);
}

/** Commands wait until the connection is open again. */
export const UNLIMITED_RETRIES = {
  maxRetriesPerRequest: null,
  retryStrategy: reconnectDelayMs,
} as const;

/**
 * Of a connection for messages: one that does not answer is closed, and `RedisSubscriber` subscribes
 * again.
 */
export const SUBSCRIBER_OPTIONS = {
  ...UNLIMITED_RETRIES,
  socketTimeout: 5000,
  autoResubscribe: false,
} as const;

/** A connection to one Redis, or to one node of a cluster. */
export class ReconnectingRedis extends Redis {
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
  ): ReturnType<typeof Redis.prototype.duplicate<Given>> {
    const options = { ...this.options, ...overrides } as RedisOptions & { replyMapping?: 'legacy' };
    return new ReconnectingRedis(options) as Redis as ReturnType<typeof this.duplicate<Given>>;
  }
}
