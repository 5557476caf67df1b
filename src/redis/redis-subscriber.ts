import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';

/** A connection on which published messages are received. */
export type RedisSubscriber = {
  /** Resolves when messages of these channels are received from now on. */
  subscribe(...channels: string[]): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /** Resolves when all messages of its channels that were published before are received. */
  ping(): Promise<void>;
  onMessage(listener: (channel: string, message: Buffer) => void): void;
  /** Called each time the connection is open: then every channel must be subscribed again. */
  onReady(listener: () => void): void;
  /** Closes a connection that does not answer. */
  reconnect(): void;
  /** Closes a connection to a node that has not these channels any more. */
  verify(): Promise<void>;
  close(): void;
};

const RETRY_DELAY_MS = 100;
/** Replies of a node that has not the channel's slot, or of a cluster that is about to be complete. */
const NOT_HERE = /^(MOVED|ASK|CLUSTERDOWN|LOADING|TRYAGAIN|MASTERDOWN)\b/;

/** Channels of one Redis, or of all nodes of a cluster. */
export function createSubscriber(redis: Redis): RedisSubscriber {
  return {
    ...connectionOf(redis, 'messageBuffer'),
    subscribe: async (...channels) => void (await redis.subscribe(...channels)),
    unsubscribe: async (channel) => void (await redis.unsubscribe(channel)),
    verify: async () => {},
  };
}

/**
 * Channels that only the node with their slot has. `isAtOwner` asks the cluster for it: the next
 * connection is opened to that node.
 */
export function createShardedSubscriber(
  redis: Redis,
  isAtOwner: () => Promise<boolean>,
): RedisSubscriber {
  const connection = connectionOf(redis, 'smessageBuffer');
  let isClosed = false;
  /** Number of the connection. */
  let opened = 0;
  redis.on('ready', () => opened++);

  async function subscribe(...channels: string[]): Promise<void> {
    const sentOn = opened;
    try {
      await redis.ssubscribe(...channels);
    } catch (error) {
      if (isClosed || !NOT_HERE.test((error as Error).message)) throw error;
      await isAtOwner();
      if (opened === sentOn) redis.disconnect(true);
      await delay(RETRY_DELAY_MS);
      await subscribe(...channels);
    }
  }

  return {
    ...connection,
    subscribe,
    unsubscribe: async (channel) => void (await redis.sunsubscribe(channel)),
    async verify() {
      const verified = opened;
      if (!(await isAtOwner()) && opened === verified && !isClosed) redis.disconnect(true);
    },
    close() {
      isClosed = true;
      connection.close();
    },
  };
}

function connectionOf(redis: Redis, event: 'messageBuffer' | 'smessageBuffer') {
  return {
    ping: async () => void (await redis.ping()),
    onMessage(listener: (channel: string, message: Buffer) => void) {
      redis.on(event, (channel: Buffer, message: Buffer) => listener(channel.toString(), message));
    },
    onReady: (listener: () => void) => void redis.on('ready', listener),
    reconnect: () => redis.disconnect(true),
    close: () => redis.disconnect(),
  };
}
