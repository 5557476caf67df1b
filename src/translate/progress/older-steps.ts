import type { NodeRun, ProgressState } from './progress-state.ts';

/** A step that was reported. `poll`: it was read from the job, and may be older than others. */
export type Step = {
  readonly value: number;
  readonly max: number;
  readonly source: 'stream' | 'poll';
};

const MAX_EARLIER_PASSES = 8;

/**
 * True for a step that was overtaken by others: polls lag, and streams are resumed. A node may
 * report several passes, each of them from its first step on. A pass with the `max` of an earlier
 * one begins with its first step, or after a pass that is complete.
 */
export function isOlder(
  { isExact }: ProgressState,
  run: NodeRun,
  { value, max, source }: Step,
): boolean {
  if (!run.hasReported) return false;
  const isComplete = run.value === run.max;
  if (run.max === max) {
    const beginsAgain = isExact && source === 'stream' && isComplete && value <= 1;
    return value < run.value && !beginsAgain;
  }
  const mayBegin = source === 'stream' && (isComplete || value <= 1);
  return run.earlierMaxes.includes(max) && !mayBegin;
}

/** The `max` of each earlier pass of a node. */
export function maxesWith({ earlierMaxes, max, hasReported }: NodeRun): readonly number[] {
  return hasReported ? [...earlierMaxes, max].slice(-MAX_EARLIER_PASSES) : earlierMaxes;
}
