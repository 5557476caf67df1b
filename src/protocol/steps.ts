/** Work in steps: each `yield` says how many values were worked on since the one before. */
export type Steps<T> = Generator<number, T>;

/** Runs the work to its end in this turn of the event loop. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
