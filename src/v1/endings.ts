import { within } from '../within.ts';

/** An upstream that says a job is over and never shows how holds the next prompt up so long. */
const PATIENCE_MS = 1000;

/**
 * Prompts whose job has ended and whose end is not told yet: the job is to be read once more, and
 * the history written. Meanwhile the next job may be running already; v1's clients hear of it after
 * the end of the one before, as they would if one process ran them one after the other.
 */
export type Endings = {
  begin(user: string, key: string): void;
  done(user: string, key: string): void;
  /** Resolves when none of the user's prompts is at its end, or after a second. */
  over(user: string): Promise<void>;
};

export function createEndings(): Endings {
  const byUser = new Map<string, Map<string, Ending>>();
  return {
    begin(user, key) {
      const endings = byUser.get(user) ?? new Map<string, Ending>();
      byUser.set(user, endings);
      if (!endings.has(key)) endings.set(key, createEnding());
    },
    done(user, key) {
      const endings = byUser.get(user);
      endings?.get(key)?.resolve();
      endings?.delete(key);
      if (endings?.size === 0) byUser.delete(user);
    },
    async over(user) {
      const endings = byUser.get(user);
      if (!endings) return;
      await within(PATIENCE_MS, Promise.all([...endings.values()].map(({ told }) => told)));
    },
  };
}

type Ending = { readonly told: Promise<void>; readonly resolve: () => void };

function createEnding(): Ending {
  let resolve = (): void => {};
  const told = new Promise<void>((done) => (resolve = done));
  return { told, resolve };
}
