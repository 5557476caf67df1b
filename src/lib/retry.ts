import type { Sleeper } from './clock.ts';

type RetryOptions = {
  readonly clock: Sleeper;
  /** The wait after the first attempt, which doubles with each further one, and the longest wait. */
  readonly waitMs: { readonly first: number; readonly last: number };
  /** Ends the waiting: `retry` rejects with an `AbortError`. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the error of each failed attempt. Throws to make no further one. */
  readonly onError: (error: unknown) => void;
};

/** Adds up to a fifth, so that those who wait do not all continue at the same moment. */
export function withJitter(ms: number): number {
  return ms * (1 + Math.random() * 0.2);
}

/** Makes attempts, one after the other, until one resolves with something other than `false`. */
export async function retry(
  attempt: () => Promise<boolean | void>,
  { clock, waitMs, signal, onError }: RetryOptions,
): Promise<void> {
  for (let ms = waitMs.first; ; ms = Math.min(ms * 2, waitMs.last)) {
    try {
      if ((await attempt()) !== false) return;
    } catch (error) {
      onError(error);
    }
    await clock.sleep(ms, signal);
  }
}
