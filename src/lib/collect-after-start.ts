import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** After this time the server is idle, unless a client has called at once. */
const AFTER_START_MS = 700;

/**
 * Collects the garbage of the start soon after it. V8 would collect it during the first hundred
 * prompts, and one of them would wait 20 ms. After a first collection V8 grows the heap before the
 * next.
 */
export function collectAfterStart(): void {
  setTimeout(collect, AFTER_START_MS).unref();
}

/**
 * Collects now. Node has no call for this; V8 adds `gc` to contexts that are created while the flag
 * is set.
 */
function collect(): void {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  gc();
}
