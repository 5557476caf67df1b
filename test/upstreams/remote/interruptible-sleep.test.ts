import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { InterruptibleSleep } from '../../../src/upstreams/remote-events/interruptible-sleep.ts';
import { StopRequest } from '../../../src/upstreams/stop-request.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts a sleep; the function returns true once the sleep has ended. */
function watch(pause: InterruptibleSleep, ms: number): () => boolean {
  let isAwake = false;
  void pause.sleep(ms).then(() => (isAwake = true));
  return () => isAwake;
}

test('a sleep lasts its time', async () => {
  const isAwake = watch(new InterruptibleSleep(new StopRequest()), 1_000);
  await vi.advanceTimersByTimeAsync(999);
  expect(isAwake()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isAwake()).toBe(true);
});

test('a ring ends a sleep, and leaves no timer', async () => {
  const pause = new InterruptibleSleep(new StopRequest());
  const isAwake = watch(pause, 1_000);
  pause.interrupt();
  await vi.advanceTimersByTimeAsync(0);
  expect([isAwake(), vi.getTimerCount()]).toEqual([true, 0]);
});

test('a ring while nothing sleeps ends the next sleep only', async () => {
  const pause = new InterruptibleSleep(new StopRequest());
  pause.interrupt();
  await pause.sleep(1_000);
  const isAwake = watch(pause, 1_000);
  await vi.advanceTimersByTimeAsync(999);
  expect(isAwake()).toBe(false);
});

test('a request to stop ends a sleep; afterwards none lasts', async () => {
  const stop = new StopRequest<'unread'>();
  const pause = new InterruptibleSleep(stop);
  const isAwake = watch(pause, 1_000);
  stop.request('unread');
  await vi.advanceTimersByTimeAsync(0);
  expect(isAwake()).toBe(true);
  await pause.sleep(1_000);
});
