/**
 * Milliseconds since 1970 that go on steadily when the system's clock is set: what something takes,
 * or waits for, is counted by this one. What is stored or told to others is counted by `Date.now`.
 */
export function monotonicNow(): number {
  return performance.timeOrigin + performance.now();
}
