import { setTimeout as delay } from 'node:timers/promises';

/** Keeps an account from calling before the upstream wants to hear from it again. */
export type Gate = {
  waitMs(): number;
  shut(forMs: number): void;
  /** Waits until it is open, a little longer for most; false when that would take too long. */
  pass(options: { readonly budgetMs: number; readonly signal?: AbortSignal }): Promise<boolean>;
};

/** Waiters come back spread over a fifth of the wait, not all at once. */
const SPREAD = 0.2;

export function createGate(clock: () => number): Gate {
  let opensAtMs = Number.NEGATIVE_INFINITY;
  const waitMs = (): number => Math.max(0, opensAtMs - clock());
  return {
    waitMs,
    shut: (forMs) => void (opensAtMs = Math.max(opensAtMs, clock() + forMs)),
    async pass({ budgetMs, signal }) {
      const deadlineMs = clock() + budgetMs;
      for (let ms = waitMs(); ms > 0; ms = waitMs()) {
        if (clock() + ms > deadlineMs) return false;
        await delay(ms * (1 + Math.random() * SPREAD), undefined, signal && { signal });
      }
      return true;
    },
  };
}

/**
 * Lets so many through at a time. A refusal for lack of room leaves one, who tries for all the
 * others; every success doubles the number again.
 */
export type Turnstile = {
  enter(): Promise<void>;
  leave(how: 'passed' | 'crowded' | 'otherwise'): void;
};

export function createTurnstile(atOnce: number): Turnstile {
  const waiting: (() => void)[] = [];
  let allowed = atOnce;
  let inside = 0;
  const admit = (): void => {
    while (inside < allowed && waiting.length > 0) {
      inside += 1;
      waiting.shift()?.();
    }
  };
  return {
    enter: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve);
        admit();
      }),
    leave(how) {
      inside -= 1;
      if (how === 'crowded') allowed = 1;
      if (how === 'passed') allowed = Math.min(atOnce, allowed * 2);
      admit();
    },
  };
}
