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
  /** By the key of the prompt. */
  readonly #places = new Map<string, Place>();

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
    return this.#places.size;
  }

  has({ key }: { readonly key: string }): boolean {
    return this.#places.has(key);
  }

  /** Adds a prompt, unless it is there. */
  add(prompt: Waiting): void {
    if (this.has(prompt)) return;
    this.#places.set(prompt.key, { prompt, moved: createDeferred(), hasTurn: false });
    this.#wakeFirst(prompt.user);
  }

  remove({ user, key }: PromptOfUser): void {
    this.#places.get(key)?.moved.resolve();
    this.#places.delete(key);
    this.#wakeFirst(user);
  }

  /**
   * Resolves when the prompt is the first of its user and has the turn, or is not in the outbox.
   * `onBehind`: called when earlier prompts wait.
   */
  async turnOf(waiting: PromptOfUser, signal: AbortSignal, onBehind: () => void): Promise<void> {
    for (;;) {
      const place = this.#places.get(waiting.key);
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
    const place = this.#places.get(waiting.key);
    if (place) place.hasTurn = false;
    this.#wakeFirst(waiting.user);
  }

  /** True when the prompt runs before the user's prompts that wait in other processes. */
  #isAheadOfOthers(prompt: Waiting): boolean {
    const others = this.#livePrompts.inOutbox(prompt.user);
    return others.every((other) => this.has(other) || byQueueOrder(prompt, other) < 0);
  }

  /** The places of a user, the one that has the turn or gets it next first. */
  #of(user: string): readonly Place[] {
    return [...this.#places.values()].filter(({ prompt }) => prompt.user === user).toSorted(byTurn);
  }

  #wakeFirst(user: string): void {
    const [first] = this.#of(user);
    if (!first) return;
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
