import { monotonicNow } from '../../lib/clock.ts';

type Step = { readonly step: number; readonly steps: number; readonly hasPicture: boolean };

const INTERVAL_MS = 100;
const SHARE = 0.005;

/**
 * Returns a function that is true for the steps that a node shows, as in v1: one every 100 ms and
 * half per cent, and always the first, the last and those with a picture.
 */
export function createStepPace(now: () => number = monotonicNow): (step: Step) => boolean {
  let shown: { readonly step: number; readonly steps: number; readonly atMs: number } | undefined;
  return ({ step, steps, hasPicture }) => {
    const atMs = now();
    const isDue =
      shown === undefined ||
      shown.steps !== steps ||
      step < shown.step ||
      hasPicture ||
      step >= steps ||
      (atMs - shown.atMs >= INTERVAL_MS && (step - shown.step) / steps >= SHARE);
    if (isDue) shown = { step, steps, atMs };
    return isDue;
  };
}
