import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { createInterimAnswerCounter } from '../../http/head-limits.ts';

export type RequestHeaders = Readonly<Record<string, string>>;

type AnswerHead = { readonly status: number; readonly headers: IncomingHttpHeaders };

/** An answer whose body is not read yet. */
export type OpenAnswer = { readonly ok: true; readonly body: Readable } & AnswerHead;

/** An answer, or the reason why there is none. */
export type HttpAnswer = OpenAnswer | { readonly ok: false; readonly cause: Error };

/**
 * An answer with its whole body; or the reason why there is none, and if the upstream may have got
 * the request.
 */
export type WholeAnswer =
  | ({ readonly ok: true; readonly text: string } & AnswerHead)
  | { readonly ok: false; readonly wasSent: boolean; readonly cause: Error };

/** Sends a request. The caller reads the body of the answer. */
export async function openAnswer(
  dispatcher: Dispatcher,
  options: Dispatcher.RequestOptions,
): Promise<HttpAnswer> {
  try {
    const onInfo = createInterimAnswerCounter();
    const { statusCode: status, headers, body } = await dispatcher.request({ ...options, onInfo });
    // The reader of a body gets its error. A body without a reader must not end the process.
    body.on('error', () => {});
    return { ok: true, status, headers, body };
  } catch (cause) {
    return { ok: false, cause: cause as Error };
  }
}

export type AnswerBounds = {
  readonly maxBytes: number;
  /** The limit for the bytes in memory of all answers together, and their number now. */
  readonly maxBytesTogether: number;
  bytesTogether: number;
  /** The time limit for the whole body, even if some bytes arrive now and then. */
  readonly maxBodyMs: number;
};

/** Reads the whole body of an answer. One above a limit fails, and its connection ends. */
export async function readWhole(
  { headers, body }: OpenAnswer,
  bounds: AnswerBounds,
): Promise<string> {
  const { maxBytes, maxBytesTogether, maxBodyMs } = bounds;
  const begunAtMs = performance.now();
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    if (Number(headers['content-length']) > maxBytes)
      throw new AnswerTooLarge(`it has ${headers['content-length']} bytes`);
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (size + chunk.length > maxBytes)
        throw new AnswerTooLarge(`it has more than ${maxBytes} bytes`);
      if (bounds.bytesTogether + chunk.length > maxBytesTogether)
        throw new AnswerTooLarge('the answers that are being read have too many bytes');
      size += chunk.length;
      bounds.bytesTogether += chunk.length;
      chunks.push(chunk);
      // Silence has a limit of its own.
      if (performance.now() - begunAtMs > maxBodyMs) throw new Error('the answer took too long');
    }
    return Buffer.concat(chunks, size).toString('utf8');
  } finally {
    bounds.bytesTogether -= size;
    body.destroy();
  }
}

/** Thrown for a body that never ends, or is larger than any that a real service sends. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}
