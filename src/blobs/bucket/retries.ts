import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { TimeSource } from '../../lib/clock.ts';

type Retries = Exclude<NonNullable<S3ClientConfig['retryStrategy']>, { retry: unknown }>;
type RetryToken = Awaited<ReturnType<Retries['acquireInitialRetryToken']>>;
type TimedToken = RetryToken & { readonly untilMs: number };

const DELAY_MS = { first: 100, longest: 5000 };
/** Another call for the same key was in progress. */
const CONFLICT = 409;

/**
 * Repeats calls of the SDK until `retryForMs` has passed. The SDK's own strategies count attempts
 * instead, share a number of retries among all calls, and give up at a conflict of two calls.
 */
export function createRetries(retryForMs: number, clock: TimeSource): Retries {
  const tokenOf = (count: number, delayMs: number, untilMs: number): TimedToken => ({
    getRetryCount: () => count,
    getRetryDelay: () => delayMs,
    untilMs,
  });
  return {
    acquireInitialRetryToken: async () => tokenOf(0, 0, clock.now() + retryForMs),
    async refreshRetryTokenForRetry(token, { errorType, error }) {
      const mayPass =
        errorType === 'TRANSIENT' ||
        errorType === 'THROTTLING' ||
        error?.$metadata?.httpStatusCode === CONFLICT;
      const { untilMs } = token as TimedToken;
      const count = token.getRetryCount() + 1;
      const delayMs = delayOf(count);
      if (!mayPass || clock.now() + delayMs > untilMs) throw error;
      return tokenOf(count, delayMs, untilMs);
    },
    recordSuccess() {},
  };
}

function delayOf(count: number): number {
  const longestMs = Math.min(DELAY_MS.first * 2 ** (count - 1), DELAY_MS.longest);
  return longestMs * (0.5 + Math.random() / 2);
}
