/** Every wait of submissions that are not over at once. */
export type RetryPolicy = {
  /** Bounds of what the upstream asks to wait for; without a word of it, `defaultWaitMs`. */
  readonly minWaitMs: number;
  readonly maxWaitMs: number;
  readonly defaultWaitMs: number;
  /** Between tries at an upstream that cannot be reached. */
  readonly retryMs: { readonly first: number; readonly last: number };
  /** Between looks for a job that may exist. */
  readonly searchMs: { readonly first: number; readonly last: number };
  /** A job nobody can see for so long is lost. */
  readonly searchWindowMs: number;
  /** One that the service's whole list has lacked for so long was not made. */
  readonly absentMs: number;
  /** A request that was given no answer may be at work for so long. */
  readonly inFlightMs: number;
};

export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  minWaitMs: 1000,
  maxWaitMs: 60_000,
  defaultWaitMs: 2000,
  retryMs: { first: 1000, last: 30_000 },
  searchMs: { first: 2000, last: 30_000 },
  searchWindowMs: 10 * 60_000,
  absentMs: 2000,
  inFlightMs: 60_000,
};

/** How long a refusal for lack of room is to be waited out, before spreading. */
export function retryAfterMs(
  { minWaitMs, maxWaitMs, defaultWaitMs }: RetryPolicy,
  error: { readonly retryAfterSeconds?: number },
): number {
  const requestedMs =
    error.retryAfterSeconds === undefined ? defaultWaitMs : error.retryAfterSeconds * 1000;
  return Math.min(maxWaitMs, Math.max(minWaitMs, requestedMs));
}

/** Up to a fifth more: many waiters must not come back in step. */
export function withJitter(ms: number): number {
  return ms * (1 + Math.random() * 0.2);
}
