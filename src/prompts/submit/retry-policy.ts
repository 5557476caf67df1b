/** All waits of submissions that do not succeed at once. */
export type RetryPolicy = {
  /** The bounds of the upstream's `Retry-After`. Without that header, `defaultWaitMs` applies. */
  readonly minWaitMs: number;
  readonly maxWaitMs: number;
  readonly defaultWaitMs: number;
  /** The waits between attempts at an upstream that cannot be reached. */
  readonly retryMs: { readonly first: number; readonly last: number };
  /** The waits between searches for a job that may exist. */
  readonly searchMs: { readonly first: number; readonly last: number };
  /** A job that no search finds for this long is lost. */
  readonly searchWindowMs: number;
  /** A job that the service's complete list lacks for this long was not made. */
  readonly absentMs: number;
  /** A request without an answer may be in progress at the service for this long. */
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

/** Returns the wait after a capacity refusal, before jitter. */
export function retryAfterMs(
  { minWaitMs, maxWaitMs, defaultWaitMs }: RetryPolicy,
  error: { readonly retryAfterSeconds?: number },
): number {
  const requestedMs =
    error.retryAfterSeconds === undefined ? defaultWaitMs : error.retryAfterSeconds * 1000;
  return Math.min(maxWaitMs, Math.max(minWaitMs, requestedMs));
}

/** Adds up to a fifth, so that prompts that wait do not all retry at the same moment. */
export function withJitter(ms: number): number {
  return ms * (1 + Math.random() * 0.2);
}

/** Returns the wait after so many failures in a row, before jitter: twice as long each time. */
export function backoffMs({ retryMs }: RetryPolicy, failures: number): number {
  return Math.min(retryMs.last, retryMs.first * 2 ** Math.min(failures, 10));
}
