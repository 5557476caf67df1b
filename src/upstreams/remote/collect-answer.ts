import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { createInterimAnswerCounter } from '../../http/interim-answers.ts';
import { AnswerTooLarge, type ByteBudget } from './answer-limits.ts';

/** A complete answer, or why there is none and whether the upstream may know of the request. */
export type WholeAnswer =
  | {
      readonly ok: true;
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly text: string;
    }
  | { readonly ok: false; readonly wasSent: boolean; readonly cause: Error };

export type AnswerBounds = {
  readonly maxBytes: number;
  /** Most bytes that the answers of all calls may hold together. */
  readonly budget: ByteBudget;
  /** For all of the body, however it trickles in. */
  readonly maxBodyMs: number;
};

/**
 * Collects one answer as its pieces come from the socket: as a stream, what is small and wanted
 * whole would cost twice as much. One that passes a bound fails with `AnswerTooLarge`.
 */
export function collectAnswer(
  bounds: AnswerBounds,
  done: (answer: WholeAnswer) => void,
): Dispatcher.DispatchHandler {
  const { maxBytes, budget, maxBodyMs } = bounds;
  const countInterim = createInterimAnswerCounter();
  let chunks: Buffer[] = [];
  let status = 0;
  let headers: IncomingHttpHeaders = {};
  let size = 0;
  let wasSent = false;
  let timer: NodeJS.Timeout | undefined;

  function release(): void {
    clearTimeout(timer);
    budget.release(size);
    chunks = [];
    size = 0;
  }
  function reserve(bytes: number): void {
    if (size + bytes > maxBytes) {
      throw new AnswerTooLarge(`it has more than ${maxBytes} bytes`);
    }
    if (!budget.reserve(bytes)) {
      throw new AnswerTooLarge('the answers that are being read have too many bytes');
    }
    size += bytes;
  }
  return {
    // A request that never got a connection was not sent, whatever its error says.
    onRequestStart: () => void (wasSent = true),
    onResponseStart(controller, statusCode, answeredHeaders) {
      if (statusCode < 200) return countInterim();
      [status, headers] = [statusCode, answeredHeaders];
      if (Number(headers['content-length']) > maxBytes) {
        throw new AnswerTooLarge(`it has ${headers['content-length']} bytes`);
      }
      const abort = (): void => controller.abort(new Error('the answer took too long'));
      timer = setTimeout(abort, maxBodyMs);
    },
    onResponseData(_controller, chunk) {
      reserve(chunk.length);
      chunks.push(chunk);
    },
    onResponseEnd() {
      const [only] = chunks;
      const bytes = chunks.length === 1 && only ? only : Buffer.concat(chunks, size);
      release();
      done({ ok: true, status, headers, text: bytes.toString('utf8') });
    },
    onResponseError(_, cause) {
      release();
      done({ ok: false, wasSent, cause });
    },
  };
}
