import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

export type TimeSource = {
  /** Milliseconds since 1970. */
  now(): number;
};

export type Sleeper = {
  /** Resolves after `ms` milliseconds. Rejects with an `AbortError` when `signal` aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

/** The time for code that waits or measures. Tests inject a clock that they advance themselves. */
export type Clock = TimeSource &
  Sleeper & {
    /** Calls `act` after `ms` milliseconds, unless the returned function is called before. */
    callAfter(ms: number, act: () => void): () => void;
  };

function callAfter(ms: number, act: () => void): () => void {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
}

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  // Node warns of more than ten, and any number may wait for one signal.
  if (signal) setMaxListeners(0, signal);
  await delay(ms, undefined, signal && { signal });
}

/** A time as v2 and v1 write it. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** The wall clock. Use it for times that are stored or sent. It can be set back. */
export const systemClock: Clock = { now: Date.now, sleep, callAfter };

/**
 * A clock that never goes back when the wall clock is set. Use it for durations, deadlines and
 * retries.
 */
export const monotonicClock: Clock = { now: monotonicNow, sleep, callAfter };

/** Returns milliseconds since 1970 that advance steadily, even when the wall clock is set. */
export function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}
