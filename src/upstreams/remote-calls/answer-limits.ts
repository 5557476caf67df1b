import type { Logger } from '../../observability/log.ts';
import { TooManyInterimAnswers } from '../../http/interim-answers.ts';

/** A body that never ends, or is larger than anything an honest service sends. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** The part of an answer that was too large; `undefined` when it failed for another reason. */
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

/** Logs an answer that was cut off for its size; false when that was not the reason. */
export function logTooLarge(
  log: Pick<Logger, 'warn'>,
  call: { readonly method: string; readonly path: string },
  cause: Error,
): boolean {
  const part = tooLargePart(cause);
  if (part === undefined) return false;
  const [path = ''] = call.path.split('?', 1);
  const fields = { event: EVENTS[part], method: call.method, path, reason: cause.message };
  log.warn(fields, 'cut off an answer of the job service: it is too large');
  return true;
}

/** Bytes that all answers being read hold together. */
export type ByteBudget = ReturnType<typeof createByteBudget>;

export function createByteBudget(maxBytes: number) {
  let reservedBytes = 0;
  return {
    /** Reserves bytes; false when the budget has no room for them. */
    reserve(bytes: number): boolean {
      if (reservedBytes + bytes > maxBytes) return false;
      reservedBytes += bytes;
      return true;
    },
    release: (bytes: number): void => void (reservedBytes -= bytes),
  };
}
