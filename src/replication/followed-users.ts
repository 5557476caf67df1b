import type { Clock } from '../lib/clock.ts';

/**
 * A user without a call, a socket or a prompt led here is followed this long: longer than the
 * frames of ended prompts are kept for late sockets.
 */
const IDLE_MS = 130_000;

type FollowedUsersOptions = {
  readonly clock: Pick<Clock, 'now'>;
  /** Receives what happens to the prompts of this user; resolves when all of them are known. */
  readonly open: (user: string) => Promise<void>;
  readonly close: (user: string) => void;
  /** Users that have a socket here, or a prompt that this process leads. */
  readonly needed: () => ReadonlySet<string>;
};

type FollowedUser = { whenKnown: Promise<void>; isKnown: boolean; usedAtMs: number };

/** The users whose prompts this process receives. */
export class FollowedUsers {
  readonly #options: FollowedUsersOptions;
  readonly #users = new Map<string, FollowedUser>();

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
      if (!isKnown || needed.has(user) || nowMs - usedAtMs < IDLE_MS) continue;
      this.#users.delete(user);
      this.#options.close(user);
    }
  }

  #start(user: string): FollowedUser {
    const followed = { whenKnown: Promise.resolve(), isKnown: false, usedAtMs: 0 };
    this.#users.set(user, followed);
    followed.whenKnown = this.#open(user).then(() => void (followed.isKnown = true));
    return followed;
  }

  async #open(user: string): Promise<void> {
    try {
      await this.#options.open(user);
    } catch (error) {
      this.#users.delete(user);
      if (!this.#options.needed().has(user)) this.#options.close(user);
      throw error;
    }
  }
}
