import type { RedisConnections } from '../redis/redis.ts';
import type { RedisPartition } from '../redis/redis-partitions.ts';
import type { RedisSubscriber } from '../redis/redis-subscriber.ts';
import type { ReceiverGroup } from '../sockets/delivery.ts';

/** Handlers of the messages that processes send each other about prompts. */
export type SubscriptionHandlers = {
  readonly onEntry: (key: string, n: number, text: string, picture?: Uint8Array) => void;
  readonly onReceived: (key: string, group: ReceiverGroup, upTo: number, instance: string) => void;
  readonly onFetched: (user: string, promptId: string) => void;
  readonly onCancel: (key: string) => void;
  /** A process gave up its prompts. */
  readonly onVacant: () => void;
  /** Called after each outage: messages about these users were missed. */
  readonly onListeningAgain: (users: readonly string[]) => void;
};

/** A connection without an answer for this long is dead. */
const ANSWER_TIMEOUT_MS = 5000;

/** Subscriptions to the messages of all partitions, each on a connection of its own. */
export class Subscription {
  readonly #links: RedisConnections;
  readonly #handlers: SubscriptionHandlers;
  readonly #opened = new Map<RedisPartition, PartitionSubscription>();

  constructor(links: RedisConnections, handlers: SubscriptionHandlers) {
    this.#links = links;
    this.#handlers = handlers;
  }

  /** Resolves when all messages about this user sent before are received. */
  async whenCaughtUp(user: string): Promise<void> {
    await this.#of(user).whenCaughtUp();
  }

  /** Resolves when everything said of this user's prompts is received from now on. */
  async follow(user: string): Promise<void> {
    await this.#of(user).add('prompts', user);
  }

  unfollow(user: string): void {
    this.#of(user).remove('prompts', user);
  }

  /** Starts or stops receiving previews of this user. */
  watch(user: string, isThere: boolean): void {
    const partition = this.#of(user);
    if (isThere) partition.add('previews', user).catch(ignoreError);
    else partition.remove('previews', user);
  }

  /** Resolves when the connections of all partitions are open. */
  async open(): Promise<void> {
    const { users } = this.#links.partitions;
    await Promise.all(users.map((partition) => this.#openPartition(partition).whenOpen));
  }

  /** Notices channels that are at another node now. */
  async verify(): Promise<void> {
    await Promise.all([...this.#opened.values()].map((partition) => partition.verify()));
  }

  close(): void {
    for (const partition of this.#opened.values()) partition.close();
  }

  #of(user: string): PartitionSubscription {
    const { users, indexOf } = this.#links.partitions;
    const partition = users[indexOf(user)];
    if (!partition) throw new Error('the ledger has no partition for a user');
    return this.#openPartition(partition);
  }

  #openPartition(partition: RedisPartition): PartitionSubscription {
    const opened =
      this.#opened.get(partition) ??
      new PartitionSubscription(this.#links.subscriber(partition), partition, this.#handlers);
    this.#opened.set(partition, opened);
    return opened;
  }
}

/** `prompts`: what happens to the prompts of a user; `previews`: their pictures. */
type ChannelKind = 'prompts' | 'previews';

/** The messages about some users, in the order in which their Redis has sent them. */
class PartitionSubscription {
  readonly #subscriber: RedisSubscriber;
  readonly #start: string;
  readonly #handlers: SubscriptionHandlers;
  readonly #users = { prompts: new Set<string>(), previews: new Set<string>() };
  /** The picture of the next entry. */
  #picture: { readonly name: string; readonly bytes: Buffer } | undefined;
  #wasReady = false;
  readonly whenOpen: Promise<void>;

  constructor(
    subscriber: RedisSubscriber,
    { channels }: RedisPartition,
    handlers: SubscriptionHandlers,
  ) {
    this.#subscriber = subscriber;
    this.#start = channels;
    this.#handlers = handlers;
    subscriber.onMessage((channel, message) => this.#receive(channel, message));
    subscriber.onReady(() => {
      if (this.#wasReady) this.#listenAgain().catch(ignoreError);
      this.#wasReady = true;
    });
    this.whenOpen = subscriber.subscribe(`${channels}servers`);
    this.whenOpen.catch(ignoreError);
  }

  async add(kind: ChannelKind, user: string): Promise<void> {
    this.#users[kind].add(user);
    await this.#subscriber.subscribe(this.#channel(kind, user));
  }

  remove(kind: ChannelKind, user: string): void {
    this.#users[kind].delete(user);
    this.#subscriber.unsubscribe(this.#channel(kind, user)).catch(ignoreError);
  }

  /** The answer of a connection comes after all messages sent before on it. */
  async whenCaughtUp(): Promise<void> {
    const timer = setTimeout(() => this.#subscriber.reconnect(), ANSWER_TIMEOUT_MS);
    try {
      await this.#subscriber.ping();
    } finally {
      clearTimeout(timer);
    }
  }

  verify(): Promise<void> {
    return this.#subscriber.verify();
  }

  close(): void {
    this.#subscriber.close();
  }

  #channel(kind: ChannelKind, user: string): string {
    return `${this.#start}${kind}:${user}`;
  }

  async #listenAgain(): Promise<void> {
    const { prompts, previews } = this.#users;
    await this.#subscriber.subscribe(
      `${this.#start}servers`,
      ...[...prompts].map((user) => this.#channel('prompts', user)),
      ...[...previews].map((user) => this.#channel('previews', user)),
    );
    this.#handlers.onListeningAgain([...prompts]);
  }

  #receive(channel: string, message: Buffer): void {
    const name = channel.slice(this.#start.length);
    if (name === 'servers') return this.#handlers.onVacant();
    const user = name.slice(name.indexOf(':') + 1);
    if (name.startsWith('previews:')) this.#receivePicture(message);
    else this.#receiveText(user, message.toString());
  }

  #receivePicture(message: Buffer): void {
    const first = message.indexOf(0x20);
    const end = message.indexOf(0x20, first + 1);
    this.#picture = { name: message.toString('latin1', 0, end), bytes: message.subarray(end + 1) };
  }

  #receiveText(user: string, message: string): void {
    const body = message.slice(2);
    if (message.startsWith('e')) return this.#receiveEntry(body);
    const [key = '', upTo = '', instance = '', group = 'client'] = body.split(' ');
    if (message.startsWith('r')) {
      return this.#handlers.onReceived(key, group as ReceiverGroup, Number(upTo), instance);
    }
    if (message.startsWith('f')) return this.#handlers.onFetched(user, decodeWord(key));
    return this.#handlers.onCancel(key);
  }

  #receiveEntry(body: string): void {
    const end = body.indexOf(' ', body.indexOf(' ') + 1);
    const name = body.slice(0, end);
    const [key = '', n = ''] = name.split(' ');
    const bytes = this.#picture?.name === name ? this.#picture.bytes : undefined;
    this.#picture = undefined;
    this.#handlers.onEntry(key, Number(n), body.slice(end + 1), bytes);
  }
}

/** Encodes any text as one word: parts of a message are separated by blanks. */
export function encodeWord(text: string): string {
  return Buffer.from(text).toString('base64url');
}

function decodeWord(word: string): string {
  return Buffer.from(word, 'base64url').toString();
}

/** Redis is unreachable: the subscription is renewed when it is back. */
function ignoreError(): void {}
