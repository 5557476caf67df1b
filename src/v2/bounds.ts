import type { Logger } from '../telemetry.ts';
import { TooManyInterimAnswers } from '../wire/interim-answers.ts';

/** A body that never ends, or is larger than anything an honest service sends. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** Which part of an answer was too large; `undefined`: it failed in another way. */
export function tooLargePart(
  cause: Error & { readonly code?: unknown },
): 'body' | 'headers' | undefined {
  if (cause instanceof AnswerTooLarge) return 'body';
  if (cause instanceof TooManyInterimAnswers) return 'headers';
  // The library reads no more than 16 KiB of them, trailers included.
  return cause.code === 'UND_ERR_HEADERS_OVERFLOW' ? 'headers' : undefined;
}

const EVENTS = {
  body: 'upstream.answer_too_large',
  headers: 'upstream.headers_too_large',
} as const;

/** Logs an answer that was cut off for its size; tells whether it was one. */
export function noteTooLarge(
  log: Pick<Logger, 'warn'>,
  call: { readonly method: string; readonly path: string },
  cause: Error,
): boolean {
  const part = tooLargePart(cause);
  if (part === undefined) return false;
  const [path = ''] = call.path.split('?', 1);
  const facts = { event: EVENTS[part], method: call.method, path, reason: cause.message };
  log.warn(facts, 'an answer of the job service was cut off: it is too large');
  return true;
}

/** Bytes that all answers being read hold together. */
export type HeldBytes = {
  /** Adds to it; false: there is no room for so much. */
  take(bytes: number): boolean;
  release(bytes: number): void;
};

export function createHeldBytes(maxBytes: number): HeldBytes {
  let held = 0;
  return {
    take(bytes) {
      if (held + bytes > maxBytes) return false;
      held += bytes;
      return true;
    },
    release: (bytes) => void (held -= bytes),
  };
}
