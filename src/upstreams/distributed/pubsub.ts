import type { Redis } from '../../lib/redis.ts';
import type { Logger } from '../../observability/log.ts';

type MessageHandler = (message: Buffer) => void;

const PING_MS = 15_000;

/** What is published, for any number of ears in this process, over one connection. */
export type PubSub = {
  /** Resolves once nothing that is published is missed; call the answer to stop. */
  subscribe(channel: string, onMessage: MessageHandler): Promise<() => void>;
  /** After the connection was away: something may have been missed. */
  onReconnect(recheck: () => void): void;
  close(): void;
};

/** Takes a connection of its own over. */
export function createPubSub(subscriber: Redis, log: Logger): PubSub {
  const handlersByChannel = new Map<string, Set<MessageHandler>>();
  const reconnectHandlers = new Set<() => void>();
  let wasReady = false;

  // A connection that owes nothing could be dead for hours.
  const pingTimer = setInterval(() => void subscriber.ping().catch(() => {}), PING_MS).unref();
  subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    for (const onMessage of handlersByChannel.get(channel.toString()) ?? []) onMessage(message);
  });
  subscriber.on('ready', () => {
    if (wasReady) void resubscribe();
    wasReady = true;
  });

  /** The client subscribes anew by itself, but does not say when that is done. */
  async function resubscribe(): Promise<void> {
    try {
      if (handlersByChannel.size > 0) await subscriber.subscribe(...handlersByChannel.keys());
      for (const recheck of reconnectHandlers) recheck();
    } catch (error) {
      log.warn({ err: error }, 'events could not be subscribed to anew');
    }
  }

  return {
    async subscribe(channel, onMessage) {
      const handlers = handlersByChannel.get(channel) ?? new Set();
      handlersByChannel.set(channel, handlers.add(onMessage));
      // Also when others listen already: theirs may not have been answered yet.
      await subscriber.subscribe(channel);
      return () => {
        handlers.delete(onMessage);
        if (handlers.size > 0 || handlersByChannel.get(channel) !== handlers) return;
        handlersByChannel.delete(channel);
        subscriber.unsubscribe(channel).catch((error: unknown) => {
          log.debug({ err: error }, 'a channel could not be left');
        });
      };
    },
    onReconnect: (recheck) => void reconnectHandlers.add(recheck),
    close: () => clearInterval(pingTimer),
  };
}
