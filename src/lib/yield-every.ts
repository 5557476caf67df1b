import { yieldToEventLoop } from './event-loop.ts';

/**
 * Divides long work into pieces of `count` steps: call it after each step and await its result.
 * Other work runs between two pieces. A step that does the work of several passes its `weight`.
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
