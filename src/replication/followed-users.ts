import type { Clock } from '../lib/clock.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { COMMAND_TIMEOUT_MS } from '../redis/redis.ts';
import type { LogHandlers } from '../prompts/prompt-event-log.ts';
import type { LogStream } from './log-stream.ts';
import type { LogStreams } from './log-streams.ts';
import type { RedisPrompts } from './redis-prompts.ts';

/**
 * A user without a call, a socket or a prompt led here is followed for this long. It must be longer than the frames
 * of ended prompts are kept for late sockets.
 */
const IDLE_MS = 130_000;

type FollowedUsersOptions = {
  readonly clock: Clock;
  readonly prompts: RedisPrompts;
  readonly streams: LogStreams;
  readonly handlers: () => LogHandlers | undefined;
  /** Reads a prompt that this process does not know. */
  readonly discover: (key: string) => Promise<void>;
  /** The users that have a socket here, or a prompt that this process leads. */
  readonly needed: () => ReadonlySet<string>;
};

type FollowedUser = { whenKnown: Promise<void>; isKnown: boolean; usedAtMs: number };

/** The users that this process follows: it has read their stored prompts, and receives the entries of their prompts. */
export class FollowedUsers {
  readonly #options: FollowedUsersOptions;
  readonly #users = new Map<string, FollowedUser>();
  /** Users whose messages were missed, until their prompts are read again. */
  readonly #recovering = new Map<string, Promise<void>>();

  constructor(options: FollowedUsersOptions) {
    this.#options = options;
  }

  /** Starts to follow the user; resolves when the user's prompts are known. After a failure the next call tries again. */
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

  /** Follows all needed users, and stops following users that have not been needed for `IDLE_MS`. */
  async update(): Promise<void> {
    await Promise.all([...this.#options.needed()].map((user) => this.follow(user)));
    const needed = this.#options.needed();
    const nowMs = this.#options.clock.now();
    for (const [user, { isKnown, usedAtMs }] of this.#users) {
      if (isKnown && !needed.has(user) && nowMs - usedAtMs >= IDLE_MS) this.#stop(user);
    }
  }

  /** Reads the stored prompts of the user, to find prompts and entries whose messages were missed. */
  async resync(user: string): Promise<void> {
    const { streams, discover } = this.#options;
    const [endedKeys] = await this.#recent(user);
    const liveKeys = (await this.#options.handlers()?.liveKeys(user)) ?? [];
    // A prompt may have begun and ended while this process received nothing.
    const unknown = [...endedKeys, ...liveKeys].filter(
      (key) => streams.get(key)?.isUnknown() ?? true,
    );
    for (const key of await this.#withEntries(unknown)) await discover(key);
    for (const stream of streams.ofUser(user)) {
      if (!stream.hasEnded()) await this.#catchUp(stream);
    }
    // The user may no longer be followed: then no more entries are received.
    if (!this.#users.has(user) && !this.#options.needed().has(user)) this.#removeUser(user);
  }

  /** Call when messages about these users were missed. Reads their prompts again, one user after the other. */
  async recover(users: readonly string[]): Promise<void> {
    let last = Promise.resolve();
    for (const user of users) {
      const read = last.then(() => this.#recoverUser(user));
      const settled = read.finally(() => {
        if (this.#recovering.get(user) === settled) this.#recovering.delete(user);
      });
      this.#recovering.set(user, (last = settled));
    }
    await last;
  }

  /** Resolves when `recover` is done with this user, or has failed. */
  async whenRecovered(user: string): Promise<void> {
    await this.#recovering.get(user)?.catch(() => {});
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

  /** Subscribes to the messages about the user, then reads the stored prompts. */
  async #track(user: string): Promise<void> {
    const { prompts, streams, handlers } = this.#options;
    const listening = prompts.follow(user);
    if (!(await completesWithin(COMMAND_TIMEOUT_MS, listening)))
      throw new Error('Redis does not answer');
    const [endedKeys, fetchedIds] = await this.#recent(user);
    await handlers()?.trackUser(user, {
      endedKeys,
      withEntries: (keys) => this.#withEntries(keys),
    });
    await Promise.all(streams.ofUser(user).map((stream) => stream.whenIdle()));
    for (const id of fetchedIds) handlers()?.resultFetched(user, id);
  }

  #stop(user: string): void {
    this.#users.delete(user);
    this.#options.prompts.unfollow(user);
    this.#removeUser(user);
  }

  #removeUser(user: string): void {
    this.#options.handlers()?.forgetUser(user);
    this.#options.streams.deleteOfUser(user);
  }

  /** Keys of prompts that ended in the last two minutes, and ids of prompts whose results were fetched in that time. */
  #recent(user: string): Promise<[string[], string[]]> {
    return this.#options.prompts.clientScripts.recent(user);
  }

  async #withEntries(keys: readonly string[]): Promise<readonly string[]> {
    const { clientScripts } = this.#options.prompts;
    return keys.length === 0 ? [] : await clientScripts.withEntries<string[]>(...keys);
  }

  async #recoverUser(user: string): Promise<void> {
    await this.resync(user);
    for (const stream of this.#options.streams.ofUser(user)) await stream.readReceivedPositions();
  }

  /** Reads missed entries. The prompt may have ended so long ago that its entries are gone: then the ledger has its end. */
  async #catchUp(stream: LogStream): Promise<void> {
    const { prompts, handlers } = this.#options;
    const { key, user } = stream;
    const isLeased = await prompts.isLeased(key);
    await stream.catchUp();
    if (isLeased || stream.token() !== undefined || stream.hasEnded()) return;
    const end = await handlers()?.endOf(key);
    if (end === 'none') await prompts.clientScripts.register(key, user);
    else if (end) await stream.finish(end);
  }
}
