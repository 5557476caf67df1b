import { LRUCache } from 'lru-cache';
import { atMost } from './lru-size.ts';

type Allowance = { left: number; atMs: number };

const MAX_CALLERS = 100_000;
const MINUTE_MS = 60_000;

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Creates a limit for requests that refills continuously. A caller is forgotten when its allowance
 * is full again.
 */
export function createRateLimiter(now: () => number) {
  const callers = new LRUCache<string, Allowance>({ ...atMost(MAX_CALLERS), ttl: MINUTE_MS });
  return {
    /** Takes one request; otherwise returns the whole seconds until one is available. */
    take(
      caller: string,
      perMinute: number,
    ): { readonly ok: true } | { readonly ok: false; readonly retryAfterSeconds: number } {
      const atMs = now();
      const before = callers.get(caller) ?? { left: perMinute, atMs };
      const refilled = (Math.max(0, atMs - before.atMs) * perMinute) / MINUTE_MS;
      const left = Math.min(perMinute, before.left + refilled);
      if (left < 1) {
        const waitMs = ((1 - left) * MINUTE_MS) / perMinute;
        return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) };
      }
      callers.set(caller, { left: left - 1, atMs });
      return { ok: true };
    },
  };
}
