import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { createInterimAnswerCounter } from '../../http/head-limits.ts';

type AnswerHead = { readonly status: number; readonly headers: IncomingHttpHeaders };

/** An answer whose body is not read yet, or the reason why there is none. */
export type HttpAnswer =
  | ({ readonly ok: true; readonly body: Readable } & AnswerHead)
  | { readonly ok: false; readonly cause: Error };

/**
 * An answer with its whole body; or the reason why there is none, and if the upstream may have got
 * the request.
 */
export type WholeAnswer =
  | ({ readonly ok: true; readonly text: string } & AnswerHead)
  | { readonly ok: false; readonly wasSent: boolean; readonly cause: Error };

type Controller = Dispatcher.DispatchController;

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
  /** The limit for the bytes in memory of all answers together. */
  readonly budget: ByteBudget;
  /** The time limit for the whole body, even if some bytes arrive now and then. */
  readonly maxBodyMs: number;
};

/**
 * One request, and its answer with the whole body. An answer above a limit fails. Interim answers
 * are dropped, since no caller waits for one.
 */
export class WholeExchange implements Dispatcher.DispatchHandler {
  readonly #resolve: (answer: WholeAnswer) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #bounds: AnswerBounds;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  /** False for a request that never got a connection: it was not sent, whatever its error says. */
  #wasSent = false;
  #countInterim: (() => void) | undefined;
  #head: AnswerHead | undefined;
  #begunAtMs = 0;

  /** An abort of the signal ends the request and its answer. */
  constructor(
    resolve: (answer: WholeAnswer) => void,
    signal: AbortSignal | undefined,
    bounds: AnswerBounds,
  ) {
    this.#resolve = resolve;
    this.#signal = signal;
    this.#bounds = bounds;
  }

  onRequestStart(controller: Controller): void {
    this.#wasSent = true;
    const signal = this.#signal;
    if (!signal) return;
    const abort = (): void => controller.abort(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) {
      this.#countInterim ??= createInterimAnswerCounter();
      return this.#countInterim();
    }
    if (Number(headers['content-length']) > this.#bounds.maxBytes)
      throw new AnswerTooLarge(`it has ${headers['content-length']} bytes`);
    this.#head = { status, headers };
    this.#begunAtMs = performance.now();
  }

  /** Receives a chunk. An exception ends the connection. */
  onResponseData(_controller: Controller, chunk: Buffer): void {
    const { maxBytes, maxBodyMs, budget } = this.#bounds;
    if (this.#size + chunk.length > maxBytes)
      throw new AnswerTooLarge(`it has more than ${maxBytes} bytes`);
    if (!budget.reserve(chunk.length))
      throw new AnswerTooLarge('the answers that are being read have too many bytes');
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    // Silence has a limit of its own.
    if (performance.now() - this.#begunAtMs > maxBodyMs)
      throw new Error('the answer took too long');
  }

  onResponseEnd(): void {
    const text = Buffer.concat(this.#chunks, this.#size).toString('utf8');
    this.#release();
    if (this.#head) this.#resolve({ ok: true, ...this.#head, text });
  }

  onResponseError(_controller: Controller | null, cause: Error): void {
    this.fail(cause);
  }

  fail(cause: Error): void {
    this.#release();
    this.#resolve({ ok: false, wasSent: this.#wasSent, cause });
  }

  #release(): void {
    this.#bounds.budget.release(this.#size);
    this.#size = 0;
  }
}

/** Thrown for a body that never ends, or is larger than any that a real service sends. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** The limit for the bytes of all answers that are being read. */
interface ByteBudget {
  /** Reserves bytes. False when the limit is reached. */
  reserve(bytes: number): boolean;
  readonly release: (bytes: number) => void;
}

export function createByteBudget(maxBytes: number): ByteBudget {
  let reservedBytes = 0;
  return {
    reserve(bytes) {
      if (reservedBytes + bytes > maxBytes) return false;
      reservedBytes += bytes;
      return true;
    },
    release: (bytes) => void (reservedBytes -= bytes),
  };
}
