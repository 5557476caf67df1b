import { S3, type S3ClientConfig } from '@aws-sdk/client-s3';
import type { BucketSource } from '../../config/files.ts';
import type { Clock, TimeSource } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { BucketError, toBucketError } from './errors.ts';

/** Makes a call. Throws a `BucketError` that names the operation when the bucket fails. */
export type BucketCall = <Result>(
  operation: string,
  work: () => Promise<Result>,
) => Promise<Result>;

const TIMEOUTS_MS = { connectionTimeout: 5000, requestTimeout: 30_000, socketTimeout: 30_000 };
/** A client that reads slowly occupies the connection of its file: it must not make other calls wait. */
const CONNECTIONS = { keepAlive: true, maxSockets: Infinity };

/** The options of a call that moves no bytes. The head of its answer arrives sooner. */
export const SHORT_CALL = { requestTimeout: 5000 };

/** Opens a client, which finds its credentials as every program with the AWS SDK does. */
export function openClient(
  { region, endpoint }: BucketSource,
  retryForMs: number,
  clock: Clock,
): S3 {
  return new S3({
    region,
    endpoint,
    forcePathStyle: true,
    // Each request has the SHA-256 of its body; not all servers know the other checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    retryStrategy: createRetries(retryForMs, clock),
    requestHandler: {
      ...TIMEOUTS_MS,
      throwOnRequestTimeout: true,
      httpAgent: CONNECTIONS,
      httpsAgent: CONNECTIONS,
    },
  });
}

/** Logs each outage of the bucket once. */
export function createCalls(bucket: string, log: Logger): BucketCall {
  let isReported = false;

  function report({ message: reason }: BucketError, operation: string): void {
    const fields = { event: 'bucket.call_failed', bucket, operation, reason };
    if (isReported) log.debug(fields, 'a call of the bucket failed');
    else
      log.error(fields, 'a call of the bucket failed: calls that need its files are answered 503');
    isReported = true;
  }

  function reportReturn(): void {
    if (isReported) log.info({ event: 'bucket.back', bucket }, 'the bucket answers again');
    isReported = false;
  }

  return async (operation, work) => {
    try {
      const result = await work();
      reportReturn();
      return result;
    } catch (cause) {
      const error = toBucketError(cause, `${operation} of the bucket ${bucket}`);
      if (!(error instanceof BucketError)) throw error;
      if (error.isAbsence || error.isConflict) reportReturn();
      else report(error, operation);
      throw error;
    }
  };
}

type Retries = Exclude<NonNullable<S3ClientConfig['retryStrategy']>, { retry: unknown }>;
type RetryToken = Awaited<ReturnType<Retries['acquireInitialRetryToken']>>;
type TimedToken = RetryToken & { readonly untilMs: number };

const DELAY_MS = { first: 100, longest: 5000 };
/** Another call for the same key was in progress. */
const CONFLICT = 409;

/**
 * Repeats calls of the SDK until `retryForMs` has passed. The SDK's own strategies count attempts
 * instead, share a number of retries among all calls, and give up at a conflict of two calls.
 * @internal
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
