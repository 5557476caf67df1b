import { versions } from 'node:process';
import { setFlagsFromString } from 'node:v8';

/** A V8 setting that says when a function is compiled with an optimizing compiler. */
type Threshold = { readonly flag: string; readonly byDefault: number; readonly larger: number };

/**
 * The thresholds by the major version of V8; other versions keep their own. V8 accepts compiled
 * code only under the settings that it was made with, so the default must be known.
 */
const THRESHOLDS: ReadonlyMap<number, Threshold> = new Map([
  // Node 20: the bytes of bytecode that a function executes before it is optimized.
  [11, { flag: '--interrupt-budget', byDefault: 67_584, larger: 400_000 }],
  // Node 24: the number of calls of a function before the cheaper of two compilers is used.
  [13, { flag: '--invocation-count-for-maglev', byDefault: 400, larger: 2000 }],
]);

const threshold = THRESHOLDS.get(Number.parseInt(versions.v8, 10));

/** By then the threads of a start have loaded Node's own modules. */
const AFTER_START_MS = 600;

let isDelayed = false;

/**
 * Makes V8 optimize functions later, from soon after the start. A session of a hundred prompts ends
 * before the optimized code has saved as much time as its compilation took:
 * docs/decisions/delayed-optimization.md.
 */
export function delayOptimization(): void {
  if (threshold) setTimeout(delay, AFTER_START_MS, threshold).unref();
}

function delay({ flag, larger }: Threshold): void {
  isDelayed = true;
  setFlagsFromString(`${flag}=${larger}`);
}

/**
 * Acts under V8's own settings. V8 accepts compiled code only under the settings that it was made
 * with.
 */
export function withDefaultOptimization<T>(act: () => T): T {
  if (!isDelayed || !threshold) return act();
  const { flag, byDefault, larger } = threshold;
  setFlagsFromString(`${flag}=${byDefault}`);
  try {
    return act();
  } finally {
    setFlagsFromString(`${flag}=${larger}`);
  }
}
