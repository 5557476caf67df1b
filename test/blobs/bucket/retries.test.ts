import { expect, test } from 'vitest';
import { createRetries } from '../../../src/blobs/bucket/client.ts';

type Failure = Parameters<ReturnType<typeof createRetries>['refreshRetryTokenForRetry']>[1];

/** Returns how often a call that always fails in this way is repeated, and for how long. */
async function repeats(retryForMs: number, failure: Failure) {
  let nowMs = 0;
  const retries = createRetries(retryForMs, { now: () => nowMs });
  let token = await retries.acquireInitialRetryToken('');
  try {
    for (;;) {
      token = await retries.refreshRetryTokenForRetry(token, failure);
      nowMs += token.getRetryDelay();
    }
  } catch (error) {
    expect(error).toBe(failure.error);
    return { count: token.getRetryCount(), lastedMs: nowMs };
  }
}

const refusal = (status: number) =>
  Object.assign(new Error('no'), { $metadata: { httpStatusCode: status } }) as never;

test.each<[string, Failure]>([
  ['a call without an answer', { errorType: 'TRANSIENT', error: new Error('reset') as never }],
  ['a bucket that slows down', { errorType: 'THROTTLING', error: refusal(503) }],
  ['a conflict of two calls', { errorType: 'CLIENT_ERROR', error: refusal(409) }],
])('%s: a caller waits five seconds, a job a minute', async (_name, failure) => {
  for (const retryForMs of [5000, 60_000]) {
    const { count, lastedMs } = await repeats(retryForMs, failure);
    expect(count).toBeGreaterThan(4);
    expect(lastedMs).toBeLessThanOrEqual(retryForMs);
    expect(lastedMs).toBeGreaterThan(retryForMs - 5000);
  }
});

test.each([403, 404, 412, 507])('a refusal with %i is final', async (status) => {
  const failure = { errorType: 'CLIENT_ERROR', error: refusal(status) } as const;
  expect(await repeats(60_000, failure)).toEqual({ count: 0, lastedMs: 0 });
});
