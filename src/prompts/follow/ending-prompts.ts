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
  readonly #prompts = new Map<string, Deferred & { readonly user: string }>();

  begin(user: string, key: string): void {
    if (!this.#prompts.has(key)) this.#prompts.set(key, { user, ...createDeferred() });
  }

  finish(key: string): void {
    this.#prompts.get(key)?.resolve();
    this.#prompts.delete(key);
  }

  /** Resolves when no prompt of the user is ending, at the latest after a second. */
  async whenFinished(user: string): Promise<void> {
    const ending = [...this.#prompts.values()].filter((prompt) => prompt.user === user);
    if (ending.length === 0) return;
    await completesWithin(MAX_WAIT_MS, Promise.all(ending.map(({ promise }) => promise)));
  }
}
