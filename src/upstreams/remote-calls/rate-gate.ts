import type { Clock } from '../../lib/clock.ts';

/** Stops the calls of an account until the upstream accepts them again. */
export type RateGate = ReturnType<typeof createRateGate>;

/** Waiters come back spread over a fifth of the wait, not all at once. */
const JITTER = 0.2;

export function createRateGate(clock: Clock) {
  let opensAtMs = Number.NEGATIVE_INFINITY;
  const waitMs = (): number => Math.max(0, opensAtMs - clock.now());
  return {
    waitMs,
    closeFor: (forMs: number): void => void (opensAtMs = Math.max(opensAtMs, clock.now() + forMs)),
    /** Waits until it is open, a little longer for most; false when that would take too long. */
    async waitUntilOpen({
      budgetMs,
      signal,
    }: {
      readonly budgetMs: number;
      readonly signal?: AbortSignal;
    }): Promise<boolean> {
      const deadlineMs = clock.now() + budgetMs;
      for (let ms = waitMs(); ms > 0; ms = waitMs()) {
        if (clock.now() + ms > deadlineMs) return false;
        await clock.sleep(ms * (1 + Math.random() * JITTER), signal);
      }
      return true;
    },
  };
}
