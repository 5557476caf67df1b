import type { Redis, RedisConnections } from '../redis/redis.ts';
import type { RedisSubscriber } from '../redis/redis-subscriber.ts';
import type { PromptOfUser } from '../prompts/prompt-event-log.ts';
import type { ReceivedUpTo, ReceiverGroup } from '../sockets/delivery.ts';
import { type Scripts, defineReplicationScripts } from './scripts.ts';

/** Handles the messages that processes send each other about prompts and sockets. `upTo`: a position in the log. */
export type PromptMessageHandlers = {
  readonly onEntry: (key: string, n: number, text: string, picture?: Uint8Array) => void;
  readonly onReceived: (key: string, group: ReceiverGroup, upTo: number, instance: string) => void;
  readonly onFetched: (user: string, promptId: string) => void;
  /** `sender`: empty for a process of an earlier version. */
  readonly onCancel: (key: string, sender: string) => void;
  /** True when other processes may have sockets of the user: then previews are published. */
  readonly isWatched: (user: string) => boolean;
  /** `count`: the number of processes that have sockets of the user. */
  readonly onWatcherCount: (user: string, count: number) => void;
};

/** An entry as text, and its position in the log. The bytes of a preview are published with it, but not stored. */
export type StoredEntry = {
  readonly n: number;
  readonly text: string;
  readonly picture?: Uint8Array;
};

/**
 * The prompts in Redis. The event log of each prompt is a Redis stream whose ids begin with the position. Messages
 * about all prompts are received in the order in which Redis sent them.
 */
export class RedisPrompts {
  readonly scripts: Scripts;
  /** The same scripts on the connection with a time limit, for calls that a client waits for. */
  readonly clientScripts: Scripts;
  readonly subscriber: RedisSubscriber;
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #channels: string;
  readonly #handlers: PromptMessageHandlers;
  /** The picture of the next received entry. */
  #picture: { readonly name: string; readonly bytes: Buffer } | undefined;

  constructor(links: RedisConnections, redis: Redis, handlers: PromptMessageHandlers) {
    this.scripts = defineReplicationScripts(redis, links);
    this.clientScripts = defineReplicationScripts(links.commands, links);
    this.subscriber = links.subscriber();
    this.#redis = redis;
    this.#prefix = links.prefix;
    this.#channels = links.channels;
    this.#handlers = handlers;
  }

  /** Resolves when all later messages about this user's prompts are received. */
  async follow(user: string): Promise<void> {
    await this.subscriber.subscribe(`${this.#channels}prompts:${user}`, this.#receiveText);
  }

  unfollow(user: string): void {
    this.subscriber.unsubscribe(`${this.#channels}prompts:${user}`, this.#receiveText);
  }

  /** Starts or stops receiving previews of this user. */
  watch(user: string, isThere: boolean): void {
    const channel = `${this.#channels}previews:${user}`;
    // This fails while Redis cannot be reached; the subscriber then subscribes again by itself.
    if (isThere) this.subscriber.subscribe(channel, this.#receivePicture).catch(() => {});
    else this.subscriber.unsubscribe(channel, this.#receivePicture);
  }

  /** Appends an entry; false when the token is no longer that of the leader. */
  async write(
    { key, user }: PromptOfUser,
    token: string,
    { n, text, picture, isLast }: StoredEntry & { readonly isLast: boolean },
  ): Promise<boolean> {
    const published = picture && this.#handlers.isWatched(user) ? picture : '';
    const last = isLast ? '1' : '0';
    const reply = await this.scripts.append<number>(key, token, n, text, user, last, published);
    if (reply < 0) return false;
    this.#handlers.onWatcherCount(user, reply);
    return true;
  }

  /** The entries after position `n`. */
  async after(key: string, n: number): Promise<readonly StoredEntry[]> {
    const stream = `${this.#prefix}entries:${key}`;
    const entries = await this.#redis.xrange(stream, `(${n}-0`, '+');
    return entries.map(([id, [, text = '']]) => ({ n: Number.parseInt(id, 10), text }));
  }

  /** The positions up to which sockets have received the log. */
  async receivedUpTo(key: string): Promise<ReceivedUpTo> {
    const receivedUpTo = `${this.#prefix}received:${key}`;
    const [client, hosted] = await this.#redis.mget(receivedUpTo, `${receivedUpTo}:hosted`);
    return { client: Number(client ?? 0), hosted: Number(hosted ?? 0) };
  }

  /** Keys of the prompts without a leader, oldest first. */
  async vacantKeys(): Promise<readonly string[]> {
    // Keys begin with the time: the oldest prompts come first.
    return (await this.scripts.vacant<string[]>()).toSorted();
  }

  /** True when a process leads the prompt, or will take it over. */
  async isLeased(key: string): Promise<boolean> {
    return (await this.#redis.zscore(`${this.#prefix}leases`, key)) !== null;
  }

  readonly #receivePicture = (message: Buffer): void => {
    const first = message.indexOf(0x20);
    const end = message.indexOf(0x20, first + 1);
    this.#picture = { name: message.toString('latin1', 0, end), bytes: message.subarray(end + 1) };
  };

  readonly #receiveText = (bytes: Buffer, channel: string): void => {
    const message = bytes.toString();
    const body = message.slice(2);
    if (message.startsWith('e')) return this.#receiveEntry(body);
    const [key = '', upTo = '', instance = '', group = 'client'] = body.split(' ');
    if (message.startsWith('r')) {
      return this.#handlers.onReceived(key, group as ReceiverGroup, Number(upTo), instance);
    }
    if (!message.startsWith('f')) return this.#handlers.onCancel(key, upTo);
    const user = channel.slice(`${this.#channels}prompts:`.length);
    this.#handlers.onFetched(user, Buffer.from(key, 'base64url').toString());
  };

  #receiveEntry(body: string): void {
    const end = body.indexOf(' ', body.indexOf(' ') + 1);
    const name = body.slice(0, end);
    const [key = '', n = ''] = name.split(' ');
    const bytes = this.#picture?.name === name ? this.#picture.bytes : undefined;
    this.#picture = undefined;
    this.#handlers.onEntry(key, Number(n), body.slice(end + 1), bytes);
  }
}
