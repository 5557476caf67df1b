import { type Context, Script, createContext } from 'node:vm';

/** The task took too long, or more of the stack than there is. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
}

type Runner = { readonly script: Script; readonly context: Context };
let runner: Runner | undefined;

/**
 * Runs a synchronous task; throws `DeadlineExceeded` when it is not over after `limitMs`, whatever
 * it is doing. Node's `vm` can end a running regular expression; nothing else in this thread can.
 */
export function runWithDeadline<T>(task: () => T, limitMs: number): T {
  const { script, context } = (runner ??= openRunner());
  context['task'] = task;
  try {
    return script.runInContext(context, { timeout: Math.max(1, Math.ceil(limitMs)) }) as T;
  } catch (error) {
    throw isOverdue(error) ? new DeadlineExceeded('the time is over', { cause: error }) : error;
  } finally {
    context['task'] = undefined;
  }
}

function openRunner(): Runner {
  return { script: new Script('task()'), context: createContext({ task: undefined }) };
}

/** V8 keeps the backtracking state of a regular expression on a separate, limited stack. */
function isOverdue(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return true;
  return error instanceof RangeError && /call stack/.test(String(message));
}
