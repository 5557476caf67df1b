import { versions } from 'node:process';
import { setFlagsFromString } from 'node:v8';

const DEFAULT_BUDGET = 67_584;
const LARGER_BUDGET = 400_000;

/** Newer ones have a cheaper compiler in between. */
const isNeeded = Number.parseInt(versions.v8, 10) < 12;

/** The threads that a start makes have loaded Node's own modules then. */
const AFTER_START_MS = 600;

let isDelayed = false;

/**
 * Makes V8 of Node 20 optimize functions later, soon after the start. A session of a hundred prompts ends before
 * the optimized code has paid for its compilation: docs/decisions/delayed-optimization.md.
 */
export function delayOptimization(): void {
  if (isNeeded) setTimeout(delay, AFTER_START_MS).unref();
}

function delay(): void {
  isDelayed = true;
  setInterruptBudget(LARGER_BUDGET);
}

/**
 * Acts under V8's own settings: V8 takes compiled code only under the settings that it was made with.
 */
export function withDefaultOptimization<T>(act: () => T): T {
  if (!isDelayed) return act();
  setInterruptBudget(DEFAULT_BUDGET);
  try {
    return act();
  } finally {
    setInterruptBudget(LARGER_BUDGET);
  }
}

/** In bytes of bytecode that a function executes before V8 thinks of compiling it. */
function setInterruptBudget(bytes: number): void {
  setFlagsFromString(`--interrupt-budget=${bytes}`);
}
