import { NodeFailure, OutOfMemory } from '../../nodes/node.ts';
import type { JobError } from '../../protocol/v2.ts';

/** The longest stored stack text. With the inputs it stays far below a frame of 1 MiB. */
const MAX_TRACE_CHARS = 8000;
const MAX_MESSAGE_CHARS = 16_000;
/**
 * The longest line that is shortened. A message may have lines that look like stack frames, and the
 * time to shorten one grows with the square of its length.
 */
const MAX_FRAME_CHARS = 1000;

/**
 * Turns a node's exception into the v2 error of its job. The last line of the traceback has the
 * exception class.
 */
export function toJobError(thrown: unknown, node: Partial<JobError>): JobError {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const outOfMemory = isOutOfMemory(error);
  const type = outOfMemory
    ? OUT_OF_MEMORY
    : error instanceof NodeFailure
      ? error.exceptionType
      : 'RuntimeError';
  const message = publicMessage(error).slice(0, MAX_MESSAGE_CHARS);
  const code = outOfMemory ? 'out_of_memory' : 'node_execution_error';
  const traceback = `${stackFrames(error)}${type}: ${message.split('\n')[0]}`;
  return jobError(code, message, { ...node, traceback, x_exception_type: type });
}

/** The exception class of PyTorch when memory is exhausted. */
export const OUT_OF_MEMORY = 'torch.OutOfMemoryError';

/**
 * Returns the message for clients. Errors of the operating system contain paths of the host, which
 * are left out.
 */
export function publicMessage({ message, code }: NodeJS.ErrnoException): string {
  const isOfSystem = code !== undefined && message.includes('/');
  return isOfSystem ? `the engine could not do this: ${code}` : message;
}

/** Returns the error of a job; without `more`, of one that ended outside of any node. */
export function jobError(code: string, message: string, more: Partial<JobError> = {}): JobError {
  const { x_exception_type: type = 'RuntimeError' } = more;
  return {
    code,
    message,
    node_id: null,
    class_type: null,
    traceback: `${type}: ${message}`,
    x_exception_type: type,
    ...more,
  };
}

/** True when memory is exhausted. V8 reports an impossible buffer as a RangeError. */
function isOutOfMemory(error: Error): boolean {
  if (error instanceof OutOfMemory) return true;
  return (
    error instanceof RangeError &&
    /allocation failed|invalid (typed )?array( buffer)? length/i.test(error.message)
  );
}

/** Returns stack lines without the folders of this installation, which are not for clients. */
function stackFrames(error: Error): string {
  const lines = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const frames = lines.map((line) =>
    line
      .slice(0, MAX_FRAME_CHARS)
      .replaceAll(/([\s(])(?:file:\/\/)?\/[^\s()]*\/(?=[^/\s()]+:\d+)/g, '$1'),
  );
  const text = frames.map((line) => `${line}\n`).join('');
  return text.slice(0, MAX_TRACE_CHARS);
}
