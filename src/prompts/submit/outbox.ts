import { type Deferred, createDeferred, untilAborted } from '../../lib/concurrency.ts';
import type { LivePrompts } from '../live-prompts.ts';
import type { SubmissionPolicy } from '../ports.ts';
import type { PromptOfUser } from '../prompt-event-log.ts';
import { type Queued, byQueueOrder } from '../queue-order.ts';

/** A prompt in the outbox: its place in v1's order. */
type Waiting = Queued & { readonly user: string };

/** The wait before checking again for prompts of other processes that come first. */
const RECHECK_MS = 100;

/** The place of a prompt. `moved` resolves when it has become the first. */
type Place = {
  readonly prompt: Waiting;
  moved: Deferred;
  /** True while the prompt is being sent: no other prompt of its user is. */
  hasTurn: boolean;
};

/** The accepted prompts that have no job: those of a user are sent one by one, in v1's order. */
export class Outbox {
  /** Has the prompts in the outboxes of all processes, as far as known. */
  readonly #livePrompts: LivePrompts;
  readonly #policy: SubmissionPolicy;
  readonly #places = new Map<string, readonly Place[]>();

  constructor(livePrompts: LivePrompts, policy: SubmissionPolicy) {
    this.#livePrompts = livePrompts;
    this.#policy = policy;
  }

  /** True when prompts of this user wait already: later ones must wait, too. */
  hasWaiting(user: string): boolean {
    return this.#count(user) > 0;
  }

  isFull(user: string): boolean {
    return this.#count(user) >= this.#policy.outboxLimit;
  }

  /** Returns the number of waiting prompts of all users. */
  depth(): number {
    return [...this.#places.values()].reduce((sum, { length }) => sum + length, 0);
  }

  has({ user, key }: PromptOfUser): boolean {
    return this.#placeOf({ user, key }) !== undefined;
  }

  /** Adds a prompt, unless it is there. */
  add(prompt: Waiting): void {
    if (this.has(prompt)) return;
    const place = { prompt, moved: createDeferred(), hasTurn: false };
    this.#set(prompt.user, [...this.#of(prompt.user), place]);
  }

  remove({ user, key }: PromptOfUser): void {
    const places = this.#of(user);
    this.#set(
      user,
      places.filter(({ prompt }) => prompt.key !== key),
    );
    for (const { prompt, moved } of places) if (prompt.key === key) moved.resolve();
  }

  /**
   * Resolves when the prompt is the first of its user and has the turn, or is not in the outbox.
   * `onBehind`: called when earlier prompts wait.
   */
  async turnOf(waiting: PromptOfUser, signal: AbortSignal, onBehind: () => void): Promise<void> {
    for (;;) {
      const place = this.#placeOf(waiting);
      if (!place) return;
      const isFirst = this.#of(waiting.user)[0] === place;
      if (isFirst && this.#isAheadOfOthers(place.prompt)) {
        place.hasTurn = true;
        return;
      }
      onBehind();
      // Prompts of other processes take their turns without a message to this one.
      if (isFirst) await this.#policy.deadlineClock.sleep(RECHECK_MS, signal);
      else await untilAborted(place.moved.promise, signal);
    }
  }

  /** Gives up the turn: a prompt that comes earlier in the order may be sent before. */
  endTurn(waiting: PromptOfUser): void {
    const place = this.#placeOf(waiting);
    if (place) place.hasTurn = false;
    this.#set(waiting.user, this.#of(waiting.user));
  }

  /** True when the prompt runs before the user's prompts that wait in other processes. */
  #isAheadOfOthers(prompt: Waiting): boolean {
    const own = new Set(this.#of(prompt.user).map((place) => place.prompt.key));
    const others = this.#livePrompts.inOutbox(prompt.user);
    return others.every((other) => own.has(other.key) || byQueueOrder(prompt, other) < 0);
  }

  #of(user: string): readonly Place[] {
    return this.#places.get(user) ?? [];
  }

  #placeOf({ user, key }: PromptOfUser): Place | undefined {
    return this.#of(user).find(({ prompt }) => prompt.key === key);
  }

  #set(user: string, places: readonly Place[]): void {
    const [first, ...rest] = places.toSorted(byTurn);
    if (!first) return void this.#places.delete(user);
    this.#places.set(user, [first, ...rest]);
    first.moved.resolve();
    first.moved = createDeferred();
  }

  /** Counts the user's prompts here and those known from other processes. */
  #count(user: string): number {
    return Math.max(this.#of(user).length, this.#livePrompts.inOutbox(user).length);
  }
}

function byTurn(a: Place, b: Place): number {
  return Number(b.hasTurn) - Number(a.hasTurn) || byQueueOrder(a.prompt, b.prompt);
}
