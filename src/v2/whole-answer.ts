import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** An answer read to its end, or why there is none and whether the upstream may know of the request. */
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
  /** For all of the body, however it trickles in. */
  readonly maxBodyMs: number;
};

/**
 * Collects one answer as its pieces come from the socket: as a stream, what is small and wanted
 * whole would cost twice as much.
 */
export function collectAnswer(
  bounds: AnswerBounds,
  done: (answer: WholeAnswer) => void,
): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = [];
  let status = 0;
  let headers: IncomingHttpHeaders = {};
  let size = 0;
  let wasSent = false;
  let late: NodeJS.Timeout | undefined;
  return {
    // A request that never got a connection was not sent, whatever the error says of it.
    onRequestStart: () => void (wasSent = true),
    onResponseStart(controller, said, saidHeaders) {
      if (said < 200) return;
      [status, headers] = [said, saidHeaders];
      const abort = (): void => controller.abort(new Error('the answer took too long'));
      late = setTimeout(abort, bounds.maxBodyMs);
    },
    onResponseData(controller, chunk) {
      size += chunk.length;
      if (size > bounds.maxBytes) return controller.abort(new Error('the answer is too large'));
      chunks.push(chunk);
    },
    onResponseEnd() {
      clearTimeout(late);
      const [only] = chunks;
      const bytes = chunks.length === 1 && only ? only : Buffer.concat(chunks, size);
      done({ ok: true, status, headers, text: bytes.toString('utf8') });
    },
    onResponseError(_, cause) {
      clearTimeout(late);
      done({ ok: false, wasSent, cause });
    },
  };
}
