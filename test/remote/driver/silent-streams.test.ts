import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SilenceWatch } from '../../../src/remote/events/silence-watch.ts';

// When a stream says nothing the job itself is asked: soon once, then more and more seldom.

const WAITS = { opening: 1_500, first: 1_500, last: 15_000, jitter: (ms: number) => ms };
const atOnce = (begin: () => void) => {
  begin();
  return () => {};
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The seconds at which it asks within a time. */
function watched(options: Partial<ConstructorParameters<typeof SilenceWatch>[0]> = {}) {
  const startMs = Date.now();
  const askedAt: number[] = [];
  const watch = new SilenceWatch({ ...WAITS, requestTurn: atOnce, ...options }, () =>
    askedAt.push((Date.now() - startMs) / 1000),
  );
  return { watch, askedAt };
}

test('a silent stream leads to a question within two seconds, then twice as late, up to 15 s', async () => {
  const { watch, askedAt } = watched();
  await vi.advanceTimersByTimeAsync(70_000);
  expect(askedAt).toEqual([1.5, 4.5, 10.5, 22.5, 37.5, 52.5, 67.5]);
  watch.close();
});

test('a stream that speaks leads to none, and each new silence begins anew', async () => {
  const { watch, askedAt } = watched();
  for (let i = 0; i < 20; i++) {
    await vi.advanceTimersByTimeAsync(1_000);
    watch.noteActivity();
  }
  expect(askedAt).toEqual([]);
  await vi.advanceTimersByTimeAsync(5_000);
  watch.noteActivity();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(askedAt).toEqual([21.5, 24.5, 26.5]);
  watch.close();
});

test('a stream that says nothing after its first state leads to a question soon, then more and more seldom', async () => {
  const { watch, askedAt } = watched({ opening: 200 });
  await vi.advanceTimersByTimeAsync(1_000);
  for (let i = 0; i < 2; i++) watch.noteActivity();
  await vi.advanceTimersByTimeAsync(3_500);
  expect(askedAt).toEqual([1.2, 1.6, 2.4, 4]);
  watch.noteActivity();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(askedAt).toEqual([1.2, 1.6, 2.4, 4, 6]);
  watch.close();
});

test('a failed read is repeated soon, and then again as late as before', async () => {
  const { watch, askedAt } = watched();
  await vi.advanceTimersByTimeAsync(1_500);
  watch.checkAgainIn(1_000);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(askedAt).toEqual([1.5, 2.5, 8.5]);
  watch.close();
});
