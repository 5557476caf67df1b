import { expect, test } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { retry } from '../../src/lib/retry.ts';

const WAIT_MS = { first: 100, last: 300 } as const;

/** A clock that writes down how long it is to wait. */
function recordedWaits() {
  const waits: number[] = [];
  return {
    waits,
    clock: {
      async sleep(ms: number, signal?: AbortSignal) {
        waits.push(ms);
        signal?.throwIfAborted();
      },
    },
  };
}

test('attempts are made until one is neither false nor an error, with waits that double up to the last', async () => {
  const { waits, clock } = recordedWaits();
  const errors: unknown[] = [];
  const outcomes = [false, new Error('first'), false, new Error('second'), undefined, true];
  await retry(
    async () => {
      const outcome = outcomes.shift();
      if (outcome instanceof Error) throw outcome;
      return outcome;
    },
    { clock, waitMs: WAIT_MS, onError: (error) => errors.push((error as Error).message) },
  );
  expect(waits).toEqual([100, 200, 300, 300]);
  expect(errors).toEqual(['first', 'second']);
  expect(outcomes).toEqual([true]);
});

test('an error that its owner throws again ends the attempts', async () => {
  const { waits, clock } = recordedWaits();
  const lost = new Error('lost');
  const attempts = retry(() => Promise.reject(lost), {
    clock,
    waitMs: WAIT_MS,
    onError(error) {
      throw error;
    },
  });
  await expect(attempts).rejects.toBe(lost);
  expect(waits).toEqual([]);
});

test('a signal ends the wait', async () => {
  const { clock } = recordedWaits();
  const attempts = retry(async () => false, {
    clock,
    waitMs: WAIT_MS,
    signal: AbortSignal.abort(),
    onError() {},
  });
  await expect(attempts).rejects.toThrow(/abort/);
});

test('twelve waits for one signal are no leak that Node warns of', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 12 }, () => systemClock.sleep(1, signal)));
  process.off('warning', note);
  expect(warnings).toEqual([]);
});
