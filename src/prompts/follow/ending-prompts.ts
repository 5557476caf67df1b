import { completesWithin } from '../../lib/completes-within.ts';

/** An upstream that says a job is over and never shows how holds the next prompt up so long. */
const MAX_WAIT_MS = 1000;

/**
 * Prompts whose job has ended and whose end is not told yet: the job is to be read once more, and
 * the history written. Meanwhile the next job may be running already; v1's clients hear of it after
 * the end of the one before, as they would if one process ran them one after the other.
 */
export type EndingPrompts = {
  begin(user: string, key: string): void;
  finish(user: string, key: string): void;
  /** Resolves when none of the user's prompts is at its end, or after a second. */
  whenFinished(user: string): Promise<void>;
};

export function createEndingPrompts(): EndingPrompts {
  const byUser = new Map<string, Map<string, EndingPrompt>>();
  return {
    begin(user, key) {
      const prompts = byUser.get(user) ?? new Map<string, EndingPrompt>();
      byUser.set(user, prompts);
      if (!prompts.has(key)) prompts.set(key, createEndingPrompt());
    },
    finish(user, key) {
      const prompts = byUser.get(user);
      prompts?.get(key)?.resolve();
      prompts?.delete(key);
      if (prompts?.size === 0) byUser.delete(user);
    },
    async whenFinished(user) {
      const prompts = byUser.get(user);
      if (!prompts) return;
      await completesWithin(
        MAX_WAIT_MS,
        Promise.all([...prompts.values()].map(({ finished }) => finished)),
      );
    },
  };
}

type EndingPrompt = { readonly finished: Promise<void>; readonly resolve: () => void };

function createEndingPrompt(): EndingPrompt {
  let resolve = (): void => {};
  const finished = new Promise<void>((finish) => (resolve = finish));
  return { finished, resolve };
}
