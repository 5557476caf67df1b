import { completesWithin } from '../../lib/completes-within.ts';
import { createDeferred } from '../../lib/concurrency.ts';

/** The longest wait for earlier prompts whose jobs cannot be read. */
const MAX_WAIT_MS = 5000;

/** The position of one prompt among those of its user. */
export type EndTurn = {
  /** Resolves when all earlier prompts have passed, at the latest after five seconds. */
  whenEarlierPassed(): Promise<unknown>;
  /** Lets later prompts pass: this prompt has ended, or its job was found to be unfinished. */
  pass(): void;
};

/**
 * Orders the ends of prompts that were taken over. Jobs that ended while no process followed them are read in
 * any order; their prompts end in the order in which they were added, so that the history of the
 * user shows them as they ran.
 */
export class EndOrder {
  readonly #last = new Map<string, Promise<void>>();

  add(user: string): EndTurn {
    const earlier = this.#last.get(user) ?? Promise.resolve();
    const { promise, resolve: pass } = createDeferred();
    const all = Promise.all([earlier, promise]).then(() => {
      if (this.#last.get(user) === all) this.#last.delete(user);
    });
    this.#last.set(user, all);
    return { whenEarlierPassed: () => completesWithin(MAX_WAIT_MS, earlier), pass };
  }
}
