import type { Redis } from 'ioredis';
import type { Logger } from '../observability/log.ts';

type MessageHandler = (message: Buffer, channel: string) => void;

const PING_MS = 15_000;

/** Subscribes to channels on a connection of its own; a channel may have any number of handlers. */
export class RedisSubscriber {
  readonly #redis: Redis;
  readonly #log: Logger;
  readonly #handlers = new Map<string, Set<MessageHandler>>();
  readonly #reconnectHandlers: (() => void)[] = [];
  readonly #pingTimer = setInterval(() => this.#verify(), PING_MS).unref();
  #wasConnected = false;
  #subscribedAgain = Promise.resolve();

  constructor(redis: Redis, log: Logger) {
    this.#redis = redis;
    this.#log = log;
    redis.on('messageBuffer', (channel: Buffer, message: Buffer) =>
      this.#receive(String(channel), message),
    );
    redis.on('ready', () => {
      if (this.#wasConnected) this.#subscribedAgain = this.#subscribeAgain();
      this.#wasConnected = true;
    });
  }

  /** Resolves when Redis has confirmed the subscription: all later messages of the channel are received. */
  async subscribe(channel: string, onMessage: MessageHandler): Promise<void> {
    this.#handlers.set(channel, (this.#handlers.get(channel) ?? new Set()).add(onMessage));
    // Needed even if the channel has other handlers: their subscription may not be confirmed yet.
    await this.#redis.subscribe(channel);
  }

  unsubscribe(channel: string, onMessage: MessageHandler): void {
    const handlers = this.#handlers.get(channel);
    if (!handlers?.delete(onMessage) || handlers.size > 0) return;
    this.#handlers.delete(channel);
    // After a failure the connection is opened again, and its channels are subscribed again.
    this.#redis.unsubscribe(channel).catch(() => {});
  }

  /**
   * `recheck` is called when the connection was lost and the channels are subscribed again. Messages may have been
   * missed in between.
   */
  onReconnect(recheck: () => void): void {
    this.#reconnectHandlers.push(recheck);
  }

  /**
   * Resolves when every message that was published before this call has been received. If the connection was lost, it
   * resolves after the handlers of `onReconnect` were called.
   */
  async ping(): Promise<void> {
    await this.#redis.ping();
    await this.#subscribedAgain;
  }

  close(): void {
    clearInterval(this.#pingTimer);
    this.#redis.disconnect();
  }

  #receive(channel: string, message: Buffer): void {
    for (const onMessage of this.#handlers.get(channel) ?? []) onMessage(message, channel);
  }

  async #subscribeAgain(): Promise<void> {
    try {
      if (this.#handlers.size > 0) await this.#redis.subscribe(...this.#handlers.keys());
      for (const recheck of this.#reconnectHandlers) recheck();
    } catch (error) {
      this.#log.warn(
        { event: 'pubsub.resubscribe_failed', err: error },
        'could not subscribe again after a lost connection',
      );
    }
  }

  /** Without a pending command, a dead connection would not be noticed for hours. */
  #verify(): void {
    this.#redis.ping().catch(() => {});
  }
}
