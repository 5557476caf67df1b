import type { Steps } from '../protocol/steps.ts';

/** The number of values that are processed before other work may run: about two milliseconds. */
const VALUES_PER_STEP = 5_000;

const waiting: (() => void)[] = [];

/**
 * Resolves in a later iteration of the event loop. Each iteration resumes one waiting task, in the
 * order of arrival, so that many large bodies together block the loop no longer than one.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(resumeNext);
  });
}

function resumeNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(resumeNext);
}

/** Runs the work, and lets other work of the process run in between. Small work is done at once. */
export async function runInSteps<T>(steps: Steps<T>): Promise<T> {
  let left = VALUES_PER_STEP;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    left -= step.value;
    if (left > 0) continue;
    await yieldToEventLoop();
    left = VALUES_PER_STEP;
  }
}

/** Gives way to other work when enough was done since the last time. */
export type Pause = (weight?: number) => Promise<void> | undefined;

/**
 * Divides long work into pieces of `count` steps. Call it after each step and await its result:
 * other work runs between two pieces. A step that does the work of several passes its `weight`.
 */
export function yieldEvery(count: number): Pause {
  let left = count;
  return (weight = 1) => {
    left -= weight;
    if (left > 0) return undefined;
    left = count;
    return yieldToEventLoop();
  };
}
