import type { Redis, RedisConnections } from '../redis/redis.ts';
import type { RedisSubscriber } from '../redis/redis-subscriber.ts';
import type { RedisPartition } from '../redis/redis-partitions.ts';
import type { PromptOfUser } from '../prompts/prompt-event-log.ts';
import type { ReceivedUpTo, ReceiverGroup } from '../sockets/delivery.ts';
import { type Scripts, defineReplicationScripts } from './scripts.ts';

/** Handlers of the messages that processes send each other about prompts, and what they share of sockets. */
export type PartitionHandlers = {
  readonly onEntry: (key: string, n: number, text: string, picture?: Uint8Array) => void;
  readonly onReceived: (key: string, group: ReceiverGroup, upTo: number, instance: string) => void;
  readonly onFetched: (user: string, promptId: string) => void;
  /** `sender`: empty for a process of an earlier version. */
  readonly onCancel: (key: string, sender: string) => void;
  /** True when other processes may have sockets of the user: they get previews. */
  readonly isWatched: (user: string) => boolean;
  /** So many processes have sockets of the user. */
  readonly onWatcherCount: (user: string, count: number) => void;
};

/** An entry as it is stored, and its position. The bytes of a preview are sent beside it, or not at all. */
export type StoredEntry = {
  readonly n: number;
  readonly text: string;
  readonly picture?: Uint8Array;
};

/**
 * The prompts of some users, whose keys are in one place. The event log of each is a stream whose ids are the
 * positions; messages about all come in the order in which their Redis has sent them.
 */
export class PromptPartition {
  readonly scripts: Scripts;
  /** The same on the other connection: a client waits for these. */
  readonly waitedFor: Scripts;
  readonly subscriber: RedisSubscriber;
  readonly #redis: Redis;
  readonly #place: RedisPartition;
  readonly #handlers: PartitionHandlers;
  /** The picture of the next entry. */
  #picture: { readonly name: string; readonly bytes: Buffer } | undefined;

  constructor(
    links: RedisConnections,
    redis: Redis,
    place: RedisPartition,
    handlers: PartitionHandlers,
  ) {
    this.scripts = defineReplicationScripts(redis, place);
    this.waitedFor = defineReplicationScripts(links.commands, place);
    this.subscriber = links.subscriber(place);
    this.#redis = redis;
    this.#place = place;
    this.#handlers = handlers;
  }

  /** Resolves when everything said of this user's prompts is received from now on. */
  async follow(user: string): Promise<void> {
    await this.subscriber.subscribe(`${this.#place.channels}prompts:${user}`, this.#receiveText);
  }

  unfollow(user: string): void {
    this.subscriber.unsubscribe(`${this.#place.channels}prompts:${user}`, this.#receiveText);
  }

  /** Starts or stops receiving previews of this user. */
  watch(user: string, isThere: boolean): void {
    const channel = `${this.#place.channels}previews:${user}`;
    if (isThere) this.subscriber.subscribe(channel, this.#receivePicture).catch(ignoreError);
    else this.subscriber.unsubscribe(channel, this.#receivePicture);
  }

  /** Appends an entry; false: the holder of this token is not the leader any more. */
  async write(
    { key, user }: PromptOfUser,
    token: string,
    { n, text, picture }: StoredEntry,
    isLast: boolean,
  ): Promise<boolean> {
    const shown = picture && this.#handlers.isWatched(user) ? picture : '';
    const last = isLast ? '1' : '0';
    const reply = await this.scripts.append<number>(key, token, n, text, user, last, shown);
    if (reply < 0) return false;
    this.#handlers.onWatcherCount(user, reply);
    return true;
  }

  /** The entries after position `n`. */
  async after(key: string, n: number): Promise<readonly StoredEntry[]> {
    const stream = `${this.#place.prefix}entries:${key}`;
    const entries = await this.#redis.xrange(stream, `(${n}-0`, '+');
    return entries.map(([id, [, text = '']]) => ({ n: Number.parseInt(id, 10), text }));
  }

  /** The positions up to which sockets have received it. */
  async receivedUpTo(key: string): Promise<ReceivedUpTo> {
    const receivedUpTo = `${this.#place.prefix}received:${key}`;
    const [client, hosted] = await this.#redis.mget(receivedUpTo, `${receivedUpTo}:hosted`);
    return { client: Number(client ?? 0), hosted: Number(hosted ?? 0) };
  }

  /** True when a process leads it, or may soon. */
  async isLeased(key: string): Promise<boolean> {
    return (await this.#redis.zscore(`${this.#place.prefix}leases`, key)) !== null;
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
    const user = channel.slice(`${this.#place.channels}prompts:`.length);
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

/** Redis is unreachable: the subscription is renewed when it is back. */
function ignoreError(): void {}

/** All prompts, in their partitions. */
export class PromptPartitions {
  readonly all: readonly PromptPartition[];
  readonly #indexOf: (user: string) => number;
  /** The partitions of prompts without a leader: of some the user is not known. */
  #vacant = new Map<string, PromptPartition>();

  constructor(links: RedisConnections, redis: Redis, handlers: PartitionHandlers) {
    const { users, indexOf } = links.partitions;
    this.all = users.map((place) => new PromptPartition(links, redis, place, handlers));
    this.#indexOf = indexOf;
  }

  ofUser(user: string): PromptPartition {
    return this.all[this.#indexOf(user)] as PromptPartition;
  }

  of({ key, user }: PromptOfUser): PromptPartition {
    return (user === '' && this.#vacant.get(key)) || this.ofUser(user);
  }

  /** The prompts without a leader. */
  async vacantKeys(): Promise<readonly string[]> {
    const vacant = new Map<string, PromptPartition>();
    await Promise.all(
      this.all.map(async (partition) => {
        for (const key of await partition.scripts.vacant<string[]>()) vacant.set(key, partition);
      }),
    );
    this.#vacant = vacant;
    // Keys begin with the time: the oldest prompts come first.
    return [...vacant.keys()].toSorted();
  }

  /** Calls `act` for each partition that has some of the prompts. */
  async each<Prompt extends PromptOfUser>(
    prompts: readonly Prompt[],
    act: (partition: PromptPartition, some: readonly Prompt[]) => Promise<void>,
  ): Promise<void> {
    const byPartition = new Map<PromptPartition, Prompt[]>();
    for (const prompt of prompts) {
      const partition = this.of(prompt);
      byPartition.set(partition, [...(byPartition.get(partition) ?? []), prompt]);
    }
    await Promise.all([...byPartition].map(([partition, some]) => act(partition, some)));
  }
}
