import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** The server is idle then, unless a client came at once. */
const AFTER_START_MS = 700;

/**
 * Collects what the start has left behind, soon after it. V8 would do it itself among the first hundred prompts, and
 * one of them would wait 20 ms for it; from a first collection on it grows the heap before the next.
 */
export function collectAfterStart(): void {
  setTimeout(collect, AFTER_START_MS).unref();
}

/** Node has no call for it: V8 adds `gc` to contexts that are made while the flag is set. */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  gc();
}
