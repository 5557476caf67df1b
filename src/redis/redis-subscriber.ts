import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from '../observability/log.ts';

type MessageHandler = (message: Buffer, channel: string) => void;

const PING_MS = 15_000;
const RETRY_DELAY_MS = 100;
/** Replies of a node that does not have the channel's slot, or that cannot serve it yet. */
const WRONG_NODE = /^(MOVED|ASK|CLUSTERDOWN|LOADING|TRYAGAIN|MASTERDOWN)\b/;

/** Subscribes to channels on a connection of its own; a channel may have any number of handlers. */
export class RedisSubscriber {
  readonly #redis: Redis;
  readonly #log: Logger;
  /** False when the channels are at another node of the cluster than the connected one. */
  readonly #isAtOwner: (() => Promise<boolean>) | undefined;
  readonly #handlers = new Map<string, Set<MessageHandler>>();
  readonly #reconnectHandlers: (() => void)[] = [];
  readonly #pingTimer = setInterval(() => void this.#verify(), PING_MS).unref();
  /** How many times the connection has been opened. */
  #connectCount = 0;
  #subscribedAgain = Promise.resolve();
  #isClosed = false;

  /** With `isAtOwner` it subscribes to sharded channels, which only the node with their slot has. */
  constructor(redis: Redis, log: Logger, isAtOwner?: () => Promise<boolean>) {
    this.#redis = redis;
    this.#log = log;
    this.#isAtOwner = isAtOwner;
    const event = isAtOwner ? 'smessageBuffer' : 'messageBuffer';
    redis.on(event, (channel: Buffer, message: Buffer) => this.#receive(String(channel), message));
    redis.on('ready', () => {
      if (this.#connectCount++ > 0) this.#subscribedAgain = this.#subscribeAgain();
    });
    // The node no longer has the slot of the channels.
    redis.on('moved', () => redis.disconnect(true));
  }

  /** Resolves when Redis has confirmed the subscription: all later messages of the channel are received. */
  async subscribe(channel: string, onMessage: MessageHandler): Promise<void> {
    this.#handlers.set(channel, (this.#handlers.get(channel) ?? new Set()).add(onMessage));
    // Needed even if the channel has other handlers: their subscription may not be confirmed yet.
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
    this.#isClosed = true;
    clearInterval(this.#pingTimer);
    this.#redis.disconnect();
  }

  #receive(channel: string, message: Buffer): void {
    for (const onMessage of this.#handlers.get(channel) ?? []) onMessage(message, channel);
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    const sentOn = this.#connectCount;
    try {
      if (this.#isAtOwner) await this.#redis.ssubscribe(...channels);
      else await this.#redis.subscribe(...channels);
    } catch (error) {
      if (this.#isClosed || !WRONG_NODE.test((error as Error).message)) throw error;
      await this.#isAtOwner?.();
      if (this.#connectCount === sentOn) this.#redis.disconnect(true);
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

  /** Without a pending command, a dead connection would not be noticed for hours. */
  async #verify(): Promise<void> {
    this.#redis.ping().catch(ignoreError);
    const checked = this.#connectCount;
    const isElsewhere = (await this.#isAtOwner?.().catch(ignoreError)) === false;
    if (isElsewhere && this.#connectCount === checked && !this.#isClosed)
      this.#redis.disconnect(true);
  }
}

/** Used where the error needs no handling: the connection is opened and its channels subscribed again. */
function ignoreError(): void {}
