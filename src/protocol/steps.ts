/** Work in steps: each `yield` states how many values were processed since the previous one. */
export type Steps<T> = Generator<number, T>;

/** Runs all steps without a pause. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
