import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';
import { atMost } from './lru-size.ts';

type Allowance = { left: number; atMs: number };

const MAX_CALLERS = 100_000;
const MINUTE_MS = 60_000;

/**
 * A limit for requests that refills continuously. A caller is forgotten when its allowance is full
 * again.
 */
export class RateLimiter {
  readonly #now: () => number;
  readonly #callers = new LRUCache<string, Allowance>({ ...atMost(MAX_CALLERS), ttl: MINUTE_MS });

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Takes one request. When none is left, returns the whole seconds until one is available. */
  take(caller: string, perMinute: number): number | undefined {
    const atMs = this.#now();
    const before = this.#callers.get(caller) ?? { left: perMinute, atMs };
    const refilled = (Math.max(0, atMs - before.atMs) * perMinute) / MINUTE_MS;
    const left = Math.min(perMinute, before.left + refilled);
    if (left < 1) {
      const waitMs = ((1 - left) * MINUTE_MS) / perMinute;
      return Math.max(1, Math.ceil(waitMs / 1000));
    }
    this.#callers.set(caller, { left: left - 1, atMs });
    return undefined;
  }
}

type Turn = { readonly dueMs: number; readonly begin: () => void };

/** Gives turns to calls that wait for one. */
export interface TurnQueue {
  /**
   * Calls `begin` at its turn, unless the returned function is called before. Turns begin in the
   * order in which they are due; one that is due later yields to others, but not for ever.
   */
  request(dueInMs: number, begin: () => void): () => void;
}

/**
 * Creates turns that are evenly spaced, at most `perSecond`. `clock` must be monotonic: after a wall
 * clock is set back, the next turn would be far in the future.
 */
export function createTurnQueue({
  perSecond,
  clock,
}: {
  readonly perSecond: number;
  readonly clock: Clock;
}): TurnQueue {
  const waiting = new Set<Turn>();
  let nextAtMs = Number.NEGATIVE_INFINITY;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled || waiting.size === 0) return;
    isScheduled = true;
    clock.callAfter(Math.max(0, nextAtMs - clock.now()), beginNext);
  }

  function beginNext(): void {
    isScheduled = false;
    let next: Turn | undefined;
    for (const turn of waiting) if (!next || turn.dueMs < next.dueMs) next = turn;
    if (!next) return;
    waiting.delete(next);
    nextAtMs = clock.now() + 1000 / perSecond;
    next.begin();
    schedule();
  }

  return {
    request(dueInMs, begin) {
      const turn = { dueMs: clock.now() + dueInMs, begin };
      waiting.add(turn);
      schedule();
      return () => void waiting.delete(turn);
    },
  };
}
