import { LRUCache } from 'lru-cache';
import { type Clock, monotonicClock } from '../lib/clock.ts';
import { coalesce } from '../lib/concurrency.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { atMost } from '../lib/lru-size.ts';
import type { Redis, RedisConnections } from '../redis/redis.ts';
import type { Logger } from '../observability/log.ts';
import {
  type LogHandlers,
  type LogSubscriber,
  type PromptOfUser,
  type PromptEventLog,
  type PromptLogEntry,
  LeadershipLost,
} from '../prompts/prompt-event-log.ts';
import type { ReceiverGroup } from '../sockets/delivery.ts';
import { Discoveries } from './discoveries.ts';
import { FollowedUsers } from './followed-users.ts';
import { keysAndTokens, LogStreams } from './log-streams.ts';
import { type PromptMessageHandlers, RedisPrompts } from './redis-prompts.ts';
import { LEASE_MS } from './scripts.ts';

type SharedEventLogOptions = {
  readonly links: RedisConnections;
  /** Unique id of this process, new after each restart. */
  readonly instance: string;
  readonly log: Logger;
  readonly clock?: Clock;
};

/**
 * The intervals at which leases are renewed, prompts without a leader are looked for, and the stored prompts of the
 * followed users are read again.
 */
const INTERVAL_MS = { renew: LEASE_MS * 0.3, findVacant: 1000, resync: 30_000 } as const;
const MAX_WATCHED_USERS = 100_000;
/** A slower reply means that Redis was unreachable. */
const SLOW_REDIS_MS = 1000;
/** A call waits for missed entries at most this long; then it is answered without them. */
const CATCH_UP_TIMEOUT_MS = 2000;

/**
 * The event log that several processes share, in Redis. The leader of a prompt appends entries to its stream. The processes that follow the user receive the entries, and read missed ones from the stream. A process
 * follows a user while it has a socket of the user, leads a prompt of the user, or had a recent call of the user.
 */
export class SharedEventLog implements PromptEventLog {
  readonly #options: SharedEventLogOptions;
  readonly #clock: Clock;
  readonly #redis: Redis;
  readonly #prompts: RedisPrompts;
  /** The users that have sockets in this process. */
  readonly #localUsers = new Set<string>();
  /** How many processes had sockets of a user when this process last appended an entry for the user. */
  readonly #watcherCounts = new LRUCache<string, number>(atMost(MAX_WATCHED_USERS));
  /** The logs that this process knows, with the write tokens of the prompts that it leads. */
  readonly streams: LogStreams;
  readonly #users: FollowedUsers;
  readonly #discoveries = new Discoveries(async (key) => {
    await this.#handlers?.discover(key).catch(this.#logFailure('read a prompt'));
  });
  readonly #timers: NodeJS.Timeout[] = [];
  #handlers: LogHandlers | undefined;
  #takeoverAllowedAtMs = 0;
  #isClosed = false;

  constructor(options: SharedEventLogOptions) {
    const { links, clock = monotonicClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#redis = links.connect();
    const prompts = new RedisPrompts(links, this.#redis, this.#messageHandlers());
    const streams = new LogStreams(prompts);
    this.#prompts = prompts;
    this.streams = streams;
    this.#users = new FollowedUsers({
      clock,
      prompts,
      streams,
      handlers: () => this.#handlers,
      discover: (key) => this.#discoveries.run(key),
      needed: () => new Set([...this.#localUsers, ...streams.led().map(({ user }) => user)]),
    });
  }

  async start(handlers: LogHandlers, live: readonly PromptOfUser[]): Promise<void> {
    this.#handlers = handlers;
    if (live.length > 0)
      await this.#prompts.scripts.register(...live.flatMap(({ key, user }) => [key, user]));
    this.#prompts.subscriber.onReconnect(() => this.#onReconnect());
    await this.#findVacant();
    this.#timers.push(
      setInterval(() => void this.#renew(), INTERVAL_MS.renew),
      setInterval(() => void this.#updateUsers(), INTERVAL_MS.renew),
      setInterval(() => void this.#findVacant(), INTERVAL_MS.findVacant),
      setInterval(() => void this.#resync(), INTERVAL_MS.resync),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#prompts.subscriber.close();
    const givenBack = this.#giveBack();
    await completesWithin(CATCH_UP_TIMEOUT_MS, givenBack).catch(() => false);
    this.#redis.disconnect();
  }

  async #giveBack(): Promise<void> {
    const led = this.streams.led();
    if (led.length > 0) await this.#prompts.scripts.giveBack(...keysAndTokens(led));
  }

  /** If the claim succeeds after this has rejected, its lease expires and the prompt is removed. */
  async claim(prompt: PromptOfUser): Promise<void> {
    const { clientScripts } = this.#prompts;
    const token = await clientScripts.claim<string>(prompt.key, this.#options.instance);
    this.streams.open(prompt).startNew(token);
    this.#users.follow(prompt.user).catch(this.#logFailure('follow a user'));
  }

  async takeOver(prompt: PromptOfUser): Promise<boolean> {
    const { scripts } = this.#prompts;
    const token = await scripts.takeOver<string | null>(prompt.key, this.#options.instance);
    return token !== null && (await this.streams.open(prompt).takeLead(token));
  }

  stopLeading(key: string): void {
    this.streams.get(key)?.loseLead();
  }

  async discard(key: string): Promise<void> {
    const stream = this.streams.get(key);
    const token = stream?.token();
    this.streams.delete(key);
    if (stream && token !== undefined) await this.#prompts.scripts.drop(key, token);
  }

  isLeader(key: string): boolean {
    return this.streams.isLed(key);
  }

  subscribe(prompt: PromptOfUser, subscriber: LogSubscriber): void {
    const since = this.#discoveries.hasFirstEntry(prompt.key) ? 'its start' : 'later';
    const stream = this.streams.open(prompt);
    stream.subscribe(subscriber, since).catch(this.#logFailure('read a prompt'));
  }

  hasAppliedEnd(key: string): boolean {
    return this.streams.get(key)?.hasAppliedEnd() ?? false;
  }

  async append(key: string, entry: PromptLogEntry): Promise<void> {
    const stream = this.streams.get(key);
    if (!stream) throw new LeadershipLost();
    await stream.append(entry);
  }

  markReceived(key: string, group: ReceiverGroup, position: number): void {
    const user = this.streams.get(key)?.user;
    if (user === undefined) return;
    // The message leaves before the frame, so that other processes do not send the frame again.
    const sent = this.#prompts.scripts.received(key, position, this.#options.instance, group, user);
    sent.catch(this.#logFailure('publish a received position'));
  }

  resultFetched(user: string, promptId: string): void {
    const encodedId = Buffer.from(promptId).toString('base64url');
    const sent = this.#prompts.scripts.fetched(user, promptId, encodedId);
    sent.catch(this.#logFailure('publish that a result was fetched'));
  }

  async requestCancel({ key, user }: PromptOfUser): Promise<void> {
    await this.#prompts.scripts
      .cancel(user, key, this.#options.instance)
      .catch(this.#logFailure('publish a cancel'));
  }

  isWatched(user: string): boolean {
    return (this.#watcherCounts.get(user) ?? 0) > (this.#localUsers.has(user) ? 1 : 0);
  }

  watch(user: string, isThere: boolean): void {
    if (isThere) this.#localUsers.add(user);
    else this.#localUsers.delete(user);
    this.#prompts.watch(user, isThere);
  }

  isFollowed(user: string): boolean {
    return this.#users.has(user);
  }

  followUser(user: string): Promise<void> {
    return this.#users.follow(user);
  }

  /** Resolves when all entries that were published before this call are applied, or after `CATCH_UP_TIMEOUT_MS`. */
  async whenCaughtUp(user: string): Promise<void> {
    await this.#users.follow(user);
    await completesWithin(CATCH_UP_TIMEOUT_MS, this.#catchUp(user));
  }

  async #catchUp(user: string): Promise<void> {
    await this.#prompts.subscriber.ping();
    await this.#users.whenRecovered(user);
    await this.#discoveries.whenDone();
    await Promise.all(this.streams.ofUser(user).map((stream) => stream.whenIdle()));
  }

  #messageHandlers(): PromptMessageHandlers {
    return {
      onEntry: (key, n, text, picture) => this.#onEntry(key, n, text, picture),
      onReceived: (key, group, upTo, sender) => {
        if (sender !== this.#options.instance)
          this.streams.get(key)?.receivedElsewhere(group, upTo);
      },
      onFetched: (user, promptId) => this.#handlers?.resultFetched(user, promptId),
      onCancel: (key, sender) => {
        if (sender !== this.#options.instance) this.#handlers?.cancelRequested(key);
      },
      isWatched: (user) => this.isWatched(user),
      onWatcherCount: (user, count) => void this.#watcherCounts.set(user, count),
    };
  }

  #onReconnect(): void {
    this.#delayTakeover();
    this.#users.recover(this.#users.all()).catch(this.#logFailure('read missed entries'));
  }

  #onEntry(key: string, n: number, text: string, picture: Uint8Array | undefined): void {
    const stream = this.streams.get(key);
    if (!stream || stream.isUnknown()) void this.#discoveries.run(key, n);
    else if (stream.token() === undefined) {
      stream.receive(n, text, picture).catch(this.#logFailure('apply an entry'));
    }
  }

  readonly #renew = this.#repeated('renew leases', async () => {
    const led = this.streams.led();
    if (led.length === 0) return;
    const lostKeys = await this.#prompts.scripts.renew<string[]>(...keysAndTokens(led));
    for (const key of lostKeys) this.streams.get(key)?.loseLead();
  });

  /** Not in `#renew`, because it waits for subscriptions. */
  readonly #updateUsers = this.#repeated('follow the users', () => this.#users.update());

  readonly #findVacant = this.#repeated('take over prompts without a leader', async () => {
    const askedAtMs = this.#clock.now();
    const keys = await this.#prompts.vacantKeys();
    if (this.#clock.now() - askedAtMs > SLOW_REDIS_MS) this.#delayTakeover();
    if (this.#clock.now() < this.#takeoverAllowedAtMs) return;
    const vacantKeys = keys.filter((key) => !this.streams.isLed(key));
    if (vacantKeys.length > 0) await this.#handlers?.takeOverVacant(vacantKeys);
    this.streams.removeEnded(this.#clock.now());
  });

  readonly #resync = this.#repeated('read missed entries', async () => {
    for (const user of this.#users.all()) await this.#users.resync(user);
  });

  /** A task that logs its failure; a call during a run leads to one more run. */
  #repeated(action: string, task: () => Promise<void>): () => Promise<void> {
    return coalesce(() => task().catch(this.#logFailure(action)));
  }

  /** Call after an outage of Redis: the live leaders need time to renew their leases. */
  #delayTakeover(): void {
    this.#takeoverAllowedAtMs = this.#clock.now() + LEASE_MS;
  }

  #logFailure(action: string): (error: unknown) => void {
    return (error) => {
      if (this.#isClosed) return;
      const facts = { event: 'replication.failed', err: error, what: action };
      this.#options.log.warn(facts, `could not ${action}`);
    };
  }
}
