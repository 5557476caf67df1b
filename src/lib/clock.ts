import { setTimeout as delay } from 'node:timers/promises';

/** Time, as code that waits or measures sees it. Tests inject one that they advance themselves. */
export type Clock = {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms` milliseconds. Rejects with an `AbortError` when `signal` aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `act` after `ms` milliseconds, unless the returned function is called before. */
  callAfter(ms: number, act: () => void): () => void;
};

function callAfter(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
}

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal && { signal });
}

/** The wall clock: use it for times that are stored or told to others. It can be set back. */
export const systemClock: Clock = { now: Date.now, sleep, callAfter };

/** Never goes back when the wall clock is set: use it for durations, deadlines and retries. */
export const monotonicClock: Clock = { now: monotonicNow, sleep, callAfter };

/** Asked for once: it never changes, and each question costs four calls. */
const { timeOrigin } = performance;

/** Milliseconds since 1970 that advance steadily, even when the wall clock is set. */
export function monotonicNow(): number {
  return timeOrigin + performance.now();
}
