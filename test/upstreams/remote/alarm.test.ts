import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Alarm } from '../../../src/upstreams/remote-events/alarm.ts';
import { StopRequest } from '../../../src/upstreams/stop-request.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts a sleep; the function returns true once the sleep has ended. */
function watch(alarm: Alarm, ms: number): () => boolean {
  let isAwake = false;
  void alarm.sleep(ms).then(() => (isAwake = true));
  return () => isAwake;
}

test('a sleep lasts its time', async () => {
  const isAwake = watch(new Alarm(new StopRequest()), 1_000);
  await vi.advanceTimersByTimeAsync(999);
  expect(isAwake()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isAwake()).toBe(true);
});

test('a ring ends a sleep, and leaves no timer', async () => {
  const alarm = new Alarm(new StopRequest());
  const isAwake = watch(alarm, 1_000);
  alarm.ring();
  await vi.advanceTimersByTimeAsync(0);
  expect([isAwake(), vi.getTimerCount()]).toEqual([true, 0]);
});

test('a ring while nothing sleeps ends the next sleep only', async () => {
  const alarm = new Alarm(new StopRequest());
  alarm.ring();
  await alarm.sleep(1_000);
  const isAwake = watch(alarm, 1_000);
  await vi.advanceTimersByTimeAsync(999);
  expect(isAwake()).toBe(false);
});

test('a request to stop ends a sleep; afterwards none lasts', async () => {
  const stop = new StopRequest<'unread'>();
  const alarm = new Alarm(stop);
  const isAwake = watch(alarm, 1_000);
  stop.request('unread');
  await vi.advanceTimersByTimeAsync(0);
  expect(isAwake()).toBe(true);
  await alarm.sleep(1_000);
});
