import type { Clock } from '../lib/clock.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { COMMAND_TIMEOUT_MS } from '../redis/redis.ts';
import type { LogHandlers } from '../prompts/prompt-event-log.ts';
import type { LogStream } from './log-stream.ts';
import type { LogStreams } from './log-streams.ts';
import type { PromptPartitions } from './partitions.ts';

/**
 * A user without a call, a socket or a prompt led here is followed this long: longer than the
 * frames of ended prompts are kept for late sockets.
 */
const IDLE_MS = 130_000;

type FollowedUsersOptions = {
  readonly clock: Pick<Clock, 'now'>;
  readonly partitions: Pick<PromptPartitions, 'ofUser'>;
  readonly streams: Pick<LogStreams, 'get' | 'ofUser' | 'deleteOfUser'>;
  readonly handlers: () => LogHandlers | undefined;
  /** Shows a prompt that this process does not know. */
  readonly discover: (key: string) => Promise<void>;
  /** Users that have a socket here, or a prompt that this process leads. */
  readonly needed: () => ReadonlySet<string>;
};

type FollowedUser = { whenKnown: Promise<void>; isKnown: boolean; usedAtMs: number };

/** The users whose prompts this process receives: their prompts as they are stored, and as it knows them. */
export class FollowedUsers {
  readonly #options: FollowedUsersOptions;
  readonly #users = new Map<string, FollowedUser>();
  /** Users whose messages were missed, until everything is read. */
  readonly #missed = new Map<string, Promise<void>>();

  constructor(options: FollowedUsersOptions) {
    this.#options = options;
  }

  /** Resolves when the prompts of the user are known. A failed attempt is made again by the next call. */
  follow(user: string): Promise<void> {
    const followed = this.#users.get(user) ?? this.#start(user);
    followed.usedAtMs = this.#options.clock.now();
    return followed.whenKnown;
  }

  /** True when all prompts of the user are known. */
  has(user: string): boolean {
    return this.#users.get(user)?.isKnown ?? false;
  }

  all(): readonly string[] {
    return [...this.#users.keys()];
  }

  /** Follows all needed users, and stops to follow those that were not needed for a while. */
  async update(): Promise<void> {
    await Promise.all([...this.#options.needed()].map((user) => this.follow(user)));
    const needed = this.#options.needed();
    const nowMs = this.#options.clock.now();
    for (const [user, { isKnown, usedAtMs }] of this.#users) {
      if (isKnown && !needed.has(user) && nowMs - usedAtMs >= IDLE_MS) this.#stop(user);
    }
  }

  /** Compares with what is stored. */
  async resync(user: string): Promise<void> {
    const { streams, discover } = this.#options;
    const [endedKeys] = await this.#recent(user);
    const liveKeys = (await this.#options.handlers()?.liveKeys(user)) ?? [];
    // A prompt may have begun and ended meanwhile.
    const unknown = [...endedKeys, ...liveKeys].filter(
      (key) => streams.get(key)?.isUnknown() ?? true,
    );
    for (const key of await this.#withEntries(user, unknown)) await discover(key);
    for (const stream of streams.ofUser(user)) {
      if (!stream.hasEnded()) await this.#catchUp(stream);
    }
    // Nothing more is received of a user that was closed meanwhile.
    if (!this.#users.has(user) && !this.#options.needed().has(user)) this.#forget(user);
  }

  /** Messages about these users were missed: reads what they said, one user after the other. */
  async recover(users: readonly string[]): Promise<void> {
    let last = Promise.resolve();
    for (const user of users) {
      const read = last.then(() => this.#readMissed(user));
      const settled = read.finally(() => {
        if (this.#missed.get(user) === settled) this.#missed.delete(user);
      });
      this.#missed.set(user, (last = settled));
    }
    await last;
  }

  /** Resolves when nothing of this user is missed, or it cannot be read. */
  async whenRecovered(user: string): Promise<void> {
    await this.#missed.get(user)?.catch(() => {});
  }

  #start(user: string): FollowedUser {
    const followed = { whenKnown: Promise.resolve(), isKnown: false, usedAtMs: 0 };
    this.#users.set(user, followed);
    followed.whenKnown = this.#open(user).then(() => void (followed.isKnown = true));
    return followed;
  }

  async #open(user: string): Promise<void> {
    try {
      await this.#track(user);
    } catch (error) {
      if (this.#options.needed().has(user)) this.#users.delete(user);
      else this.#stop(user);
      throw error;
    }
  }

  /** Receives what happens from now on, then reads what is stored. */
  async #track(user: string): Promise<void> {
    const { partitions, streams, handlers } = this.#options;
    const listening = partitions.ofUser(user).follow(user);
    if (!(await completesWithin(COMMAND_TIMEOUT_MS, listening)))
      throw new Error('Redis does not answer');
    const [endedKeys, fetchedIds] = await this.#recent(user);
    await handlers()?.trackUser(user, {
      endedKeys,
      withEntries: (keys) => this.#withEntries(user, keys),
    });
    await Promise.all(streams.ofUser(user).map((stream) => stream.whenIdle()));
    for (const id of fetchedIds) handlers()?.resultFetched(user, id);
  }

  #stop(user: string): void {
    this.#users.delete(user);
    this.#options.partitions.ofUser(user).unfollow(user);
    this.#forget(user);
  }

  #forget(user: string): void {
    this.#options.handlers()?.forgetUser(user);
    this.#options.streams.deleteOfUser(user);
  }

  /** Keys of prompts that ended a moment ago, and ids of prompts whose results were fetched. */
  #recent(user: string): Promise<[string[], string[]]> {
    return this.#options.partitions.ofUser(user).waitedFor.recent(user);
  }

  async #withEntries(user: string, keys: readonly string[]): Promise<readonly string[]> {
    const { waitedFor } = this.#options.partitions.ofUser(user);
    return keys.length === 0 ? [] : await waitedFor.withEntries<string[]>(...keys);
  }

  async #readMissed(user: string): Promise<void> {
    await this.resync(user);
    for (const stream of this.#options.streams.ofUser(user)) await stream.readReceived();
  }

  /** A prompt may have ended while this process received nothing, longer ago than entries are kept. */
  async #catchUp(stream: LogStream): Promise<void> {
    const { partitions, handlers } = this.#options;
    const { key, user } = stream;
    const partition = partitions.ofUser(user);
    const isLeased = await partition.isLeased(key);
    await stream.catchUp();
    if (isLeased || stream.token() !== undefined || stream.hasEnded()) return;
    const end = await handlers()?.endOf(key);
    if (end === 'none') await partition.waitedFor.register(key, user);
    else if (end) await stream.finish(end);
  }
}
