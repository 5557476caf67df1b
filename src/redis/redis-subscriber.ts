import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from '../observability/log.ts';

type MessageHandler = (message: Buffer, channel: string) => void;

const PING_MS = 15_000;
const RETRY_DELAY_MS = 100;
/** Replies of a node that has not the channel's slot, or of a cluster that is about to be complete. */
const NOT_HERE = /^(MOVED|ASK|CLUSTERDOWN|LOADING|TRYAGAIN|MASTERDOWN)\b/;

/** Subscriptions to published messages, for any number of handlers, on a connection of its own. */
export class RedisSubscriber {
  readonly #redis: Redis;
  readonly #log: Logger;
  /** Asks a cluster: false when another node than the connected one has the channels now. */
  readonly #isAtOwner: (() => Promise<boolean>) | undefined;
  readonly #handlers = new Map<string, Set<MessageHandler>>();
  readonly #reconnectHandlers: (() => void)[] = [];
  readonly #pingTimer = setInterval(() => void this.#verify(), PING_MS).unref();
  /** Number of the connection. */
  #opened = 0;
  #subscribedAgain = Promise.resolve();
  #isClosed = false;

  /** With `isAtOwner` its channels are those that only the node with their slot has. */
  constructor(redis: Redis, log: Logger, isAtOwner?: () => Promise<boolean>) {
    this.#redis = redis;
    this.#log = log;
    this.#isAtOwner = isAtOwner;
    const event = isAtOwner ? 'smessageBuffer' : 'messageBuffer';
    redis.on(event, (channel: Buffer, message: Buffer) => this.#receive(String(channel), message));
    redis.on('ready', () => {
      if (this.#opened++ > 0) this.#subscribedAgain = this.#subscribeAgain();
    });
    // The node says that it has not the channels any more.
    redis.on('moved', () => redis.disconnect(true));
  }

  /** Resolves when messages of the channel are received from now on. */
  async subscribe(channel: string, onMessage: MessageHandler): Promise<void> {
    this.#handlers.set(channel, (this.#handlers.get(channel) ?? new Set()).add(onMessage));
    // Also when other handlers exist: their subscription may not be confirmed yet.
    await this.#subscribe([channel]);
  }

  unsubscribe(channel: string, onMessage: MessageHandler): void {
    const handlers = this.#handlers.get(channel);
    if (!handlers?.delete(onMessage) || handlers.size > 0) return;
    this.#handlers.delete(channel);
    const done = this.#isAtOwner
      ? this.#redis.sunsubscribe(channel)
      : this.#redis.unsubscribe(channel);
    done.catch(ignoreError);
  }

  /** Called after a lost connection, when its channels are subscribed again: messages may have been missed. */
  onReconnect(recheck: () => void): void {
    this.#reconnectHandlers.push(recheck);
  }

  /**
   * Resolves when all messages of its channels that were published before are received, or are missed and those who
   * asked for it were told.
   */
  async ping(): Promise<void> {
    await this.#redis.ping();
    await this.#subscribedAgain;
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pingTimer);
    this.#redis.disconnect();
  }

  #receive(channel: string, message: Buffer): void {
    for (const onMessage of this.#handlers.get(channel) ?? []) onMessage(message, channel);
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    const sentOn = this.#opened;
    try {
      if (this.#isAtOwner) await this.#redis.ssubscribe(...channels);
      else await this.#redis.subscribe(...channels);
    } catch (error) {
      if (this.#isClosed || !NOT_HERE.test((error as Error).message)) throw error;
      await this.#isAtOwner?.();
      if (this.#opened === sentOn) this.#redis.disconnect(true);
      await delay(RETRY_DELAY_MS);
      await this.#subscribe(channels);
    }
  }

  async #subscribeAgain(): Promise<void> {
    try {
      if (this.#handlers.size > 0) await this.#subscribe([...this.#handlers.keys()]);
      for (const recheck of this.#reconnectHandlers) recheck();
    } catch (error) {
      this.#log.warn(
        { event: 'pubsub.resubscribe_failed', err: error },
        'could not subscribe again after a lost connection',
      );
    }
  }

  /** A dead connection without pending commands would stay unnoticed for hours. */
  async #verify(): Promise<void> {
    this.#redis.ping().catch(ignoreError);
    const verified = this.#opened;
    const isElsewhere = (await this.#isAtOwner?.().catch(ignoreError)) === false;
    if (isElsewhere && this.#opened === verified && !this.#isClosed) this.#redis.disconnect(true);
  }
}

/** The connection is opened again, and everything subscribed then. */
function ignoreError(): void {}
