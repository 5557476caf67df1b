import { setTimeout as delay } from 'node:timers/promises';

/** Keeps an account from calling before the upstream wants to hear from it again. */
export type RateGate = {
  waitMs(): number;
  closeFor(forMs: number): void;
  /** Waits until it is open, a little longer for most; false when that would take too long. */
  waitUntilOpen(options: {
    readonly budgetMs: number;
    readonly signal?: AbortSignal;
  }): Promise<boolean>;
};

/** Waiters come back spread over a fifth of the wait, not all at once. */
const JITTER = 0.2;

export function createRateGate(clock: () => number): RateGate {
  let opensAtMs = Number.NEGATIVE_INFINITY;
  const waitMs = (): number => Math.max(0, opensAtMs - clock());
  return {
    waitMs,
    closeFor: (forMs) => void (opensAtMs = Math.max(opensAtMs, clock() + forMs)),
    async waitUntilOpen({ budgetMs, signal }) {
      const deadlineMs = clock() + budgetMs;
      for (let ms = waitMs(); ms > 0; ms = waitMs()) {
        if (clock() + ms > deadlineMs) return false;
        await delay(ms * (1 + Math.random() * JITTER), undefined, signal && { signal });
      }
      return true;
    },
  };
}

/**
 * Lets so many through at a time. A refusal for lack of room leaves one, who tries for all the
 * others; every success doubles the number again.
 */
export type AdaptiveSemaphore = {
  acquire(): Promise<void>;
  release(outcome: 'passed' | 'crowded' | 'otherwise'): void;
};

export function createAdaptiveSemaphore(maxConcurrent: number): AdaptiveSemaphore {
  const waiting: (() => void)[] = [];
  let limit = maxConcurrent;
  let active = 0;
  const admitWaiting = (): void => {
    while (active < limit && waiting.length > 0) {
      active += 1;
      waiting.shift()?.();
    }
  };
  return {
    acquire: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve);
        admitWaiting();
      }),
    release(outcome) {
      active -= 1;
      if (outcome === 'crowded') limit = 1;
      if (outcome === 'passed') limit = Math.min(maxConcurrent, limit * 2);
      admitWaiting();
    },
  };
}
