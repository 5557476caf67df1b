import { completesWithin } from '../../lib/completes-within.ts';
import { type Deferred, createDeferred } from '../../lib/concurrency.ts';

/** The time limit for an upstream that reports an end but never returns the ended job. */
const MAX_WAIT_MS = 1000;

/**
 * The prompts whose job has ended but whose end is not sent yet: their job is read once more and
 * their history is written. The next job may run already. v1 clients get its frames after the end
 * of the prompt before, as from a server that runs one prompt after the other.
 */
export class EndingPrompts {
  readonly #byUser = new Map<string, Map<string, Deferred>>();

  begin(user: string, key: string): void {
    const prompts = this.#byUser.get(user) ?? new Map<string, Deferred>();
    this.#byUser.set(user, prompts);
    if (!prompts.has(key)) prompts.set(key, createDeferred());
  }

  finish(user: string, key: string): void {
    const prompts = this.#byUser.get(user);
    prompts?.get(key)?.resolve();
    prompts?.delete(key);
    if (prompts?.size === 0) this.#byUser.delete(user);
  }

  /** Resolves when no prompt of the user is ending, at the latest after a second. */
  async whenFinished(user: string): Promise<void> {
    const prompts = this.#byUser.get(user);
    if (!prompts) return;
    await completesWithin(
      MAX_WAIT_MS,
      Promise.all([...prompts.values()].map(({ promise }) => promise)),
    );
  }
}
