import { yieldToEventLoop } from './event-loop.ts';

/**
 * Cuts long work into pieces of `count` steps: call it after each step and await what it returns.
 * Between two pieces the event loop serves everybody else. A step that does the work of several
 * says so by its `weight`.
 */
export function yieldEvery(count: number): (weight?: number) => Promise<void> | undefined {
  let left = count;
  return (weight = 1) => {
    left -= weight;
    if (left > 0) return undefined;
    left = count;
    return yieldToEventLoop();
  };
}
