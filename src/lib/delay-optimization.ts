import { versions } from 'node:process';
import { setFlagsFromString } from 'node:v8';

/** V8's own value is 67,584 bytes of bytecode executed in a function. */
const INTERRUPT_BUDGET = 400_000;

/**
 * Makes V8 optimize functions later. A session of a hundred prompts ends before
 * the optimized code has paid for its compilation: docs/decisions/delayed-optimization.md.
 * Only V8 before 12 (Node 20) needs it: newer ones have a cheaper compiler in between.
 */
export function delayOptimization(): void {
  if (Number.parseInt(versions.v8, 10) < 12) {
    setFlagsFromString(`--interrupt-budget=${INTERRUPT_BUDGET}`);
  }
}
