import { versions } from 'node:process';
import { setFlagsFromString } from 'node:v8';

const DEFAULT_BUDGET = 67_584;
const LARGER_BUDGET = 400_000;

/** Newer ones have a cheaper compiler in between. */
const isNeeded = Number.parseInt(versions.v8, 10) < 12;

/**
 * Makes V8 of Node 20 optimize functions later. A session of a hundred prompts ends before
 * the optimized code has paid for its compilation: docs/decisions/delayed-optimization.md.
 */
export function delayOptimization(): void {
  if (isNeeded) setInterruptBudget(LARGER_BUDGET);
}

/** For a server that delays it: V8 takes compiled code only under the settings that it was made with. */
export function withDefaultOptimization<T>(act: () => T): T {
  if (!isNeeded) return act();
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
