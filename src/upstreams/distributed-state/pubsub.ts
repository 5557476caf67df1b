import type { RedisSubscriber } from '../../redis/redis-subscriber.ts';
import type { Logger } from '../../observability/log.ts';

export type PubSub = ReturnType<typeof createPubSub>;

type MessageHandler = (message: Buffer) => void;

const PING_MS = 15_000;

/**
 * Subscriptions to published messages, for any number of handlers in this process, over one
 * connection. Uses a connection of its own.
 */
export function createPubSub(subscriber: RedisSubscriber, log: Logger) {
  const handlersByChannel = new Map<string, Set<MessageHandler>>();
  const reconnectHandlers = new Set<() => void>();
  let wasReady = false;

  // A dead connection without pending commands would stay unnoticed for hours.
  const pingTimer = setInterval(() => {
    subscriber.ping().catch(ignoreError);
    subscriber.verify().catch(ignoreError);
  }, PING_MS).unref();
  subscriber.onMessage((channel, message) => {
    for (const onMessage of handlersByChannel.get(channel) ?? []) onMessage(message);
  });
  subscriber.onReady(() => {
    if (wasReady) void resubscribe();
    wasReady = true;
  });

  async function resubscribe(): Promise<void> {
    try {
      if (handlersByChannel.size > 0) await subscriber.subscribe(...handlersByChannel.keys());
      for (const recheck of reconnectHandlers) recheck();
    } catch (error) {
      log.warn(
        { event: 'pubsub.resubscribe_failed', err: error },
        'could not subscribe again after a lost connection',
      );
    }
  }

  return {
    /** Resolves once the subscription is active. Call the result to unsubscribe. */
    async subscribe(channel: string, onMessage: MessageHandler): Promise<() => void> {
      const handlers = handlersByChannel.get(channel) ?? new Set();
      handlersByChannel.set(channel, handlers.add(onMessage));
      // Also when other handlers exist: their subscription may not be confirmed yet.
      await subscriber.subscribe(channel);
      return () => {
        handlers.delete(onMessage);
        if (handlers.size > 0 || handlersByChannel.get(channel) !== handlers) return;
        handlersByChannel.delete(channel);
        subscriber.unsubscribe(channel).catch((error: unknown) => {
          log.debug(
            { event: 'pubsub.unsubscribe_failed', err: error },
            'could not unsubscribe from a channel',
          );
        });
      };
    },
    /** Called after a lost connection: messages may have been missed. */
    onReconnect: (recheck: () => void): void => void reconnectHandlers.add(recheck),
    close: (): void => clearInterval(pingTimer),
  };
}

/** The connection is opened again, and everything subscribed then. */
function ignoreError(): void {}
