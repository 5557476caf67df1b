import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { createInterimAnswerCounter } from '../../http/interim-answers.ts';

/**
 * An answer whose body is not read yet, or why there is none and whether the upstream may know of
 * the request.
 */
export type HttpAnswer =
  | {
      readonly ok: true;
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Readable;
    }
  | { readonly ok: false; readonly wasSent: boolean; readonly cause: Error };

/** An answer read to its end, or why there is none and whether the upstream may know of the request. */
export type WholeAnswer =
  | {
      readonly ok: true;
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly text: string;
    }
  | Extract<HttpAnswer, { ok: false }>;

type Controller = Dispatcher.DispatchController;

type Failure = Extract<HttpAnswer, { ok: false }>;

/** One request and its answer, without the interim answers: no caller waits for one. */
export abstract class Exchange<Answer> implements Dispatcher.DispatchHandler {
  protected readonly resolve: (answer: Answer | Failure) => void;
  /** A request that never got a connection was not sent, whatever its error says. */
  #wasSent = false;
  readonly #signal: AbortSignal | undefined;
  #countInterim: (() => void) | undefined;

  /** An abort of the signal ends the request and its answer. */
  constructor(resolve: (answer: Answer | Failure) => void, signal: AbortSignal | undefined) {
    this.resolve = resolve;
    this.#signal = signal;
  }

  onRequestStart(controller: Controller): void {
    this.#wasSent = true;
    const signal = this.#signal;
    if (!signal) return;
    const abort = (): void => controller.abort(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }

  onResponseStart(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (status >= 200) return this.onAnswer(controller, status, headers);
    this.#countInterim ??= createInterimAnswerCounter();
    this.#countInterim();
  }

  onResponseError(_controller: Controller | null, cause: Error): void {
    this.fail(cause);
  }

  fail(cause: Error): void {
    this.resolve({ ok: false, wasSent: this.#wasSent, cause });
  }

  protected abstract onAnswer(
    controller: Controller,
    status: number,
    headers: IncomingHttpHeaders,
  ): void;
  abstract onResponseData(controller: Controller, chunk: Buffer): void;
  abstract onResponseEnd(controller: Controller): void;
}

/** An answer whose body is read by the caller. */
export class OpenExchange extends Exchange<HttpAnswer> {
  #body: AnswerBody | undefined;

  protected onAnswer(controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    const body = new AnswerBody(controller);
    this.#body = body;
    this.resolve({ ok: true, status, headers, body });
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#body?.push(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    this.#body?.push(null);
  }

  override onResponseError(controller: Controller | null, cause: Error): void {
    if (this.#body) this.#body.destroy(cause);
    else super.onResponseError(controller, cause);
  }
}

/** The body of an answer, read from its connection no faster than from here. */
class AnswerBody extends Readable {
  readonly #controller: Controller;

  constructor(controller: Controller) {
    super({ highWaterMark: BODY_BUFFER_BYTES });
    this.#controller = controller;
    // The reader of a body receives its error; a body without a reader must not end the process.
    this.on('error', () => {});
  }

  override _read(): void {
    this.#controller.resume();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    if (!this.readableEnded) {
      this.#controller.abort(error ?? new Error('the answer is not read to its end'));
    }
    callback(error);
  }
}

const BODY_BUFFER_BYTES = 64 * 1024;

export type AnswerBounds = {
  readonly maxBytes: number;
  /** Most bytes that the answers of all calls may hold together. */
  readonly budget: ByteBudget;
  /** For all of the body, however it trickles in. */
  readonly maxBodyMs: number;
};

/** An answer that is read to its end; one that passes a bound fails. */
export class WholeExchange extends Exchange<WholeAnswer> {
  readonly #bounds: AnswerBounds;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #head: Pick<Extract<WholeAnswer, { ok: true }>, 'status' | 'headers'> | undefined;
  #begunAtMs = 0;

  constructor(
    resolve: (answer: WholeAnswer) => void,
    signal: AbortSignal | undefined,
    bounds: AnswerBounds,
  ) {
    super(resolve, signal);
    this.#bounds = bounds;
  }

  protected onAnswer(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    if (Number(headers['content-length']) > this.#bounds.maxBytes)
      throw new AnswerTooLarge(`it has ${headers['content-length']} bytes`);
    this.#head = { status, headers };
    this.#begunAtMs = performance.now();
  }

  /** An exception ends the connection. */
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
    if (this.#head) this.resolve({ ok: true, ...this.#head, text });
  }

  override fail(cause: Error): void {
    this.#release();
    super.fail(cause);
  }

  #release(): void {
    this.#bounds.budget.release(this.#size);
    this.#size = 0;
  }
}

/** A body that never ends, or is larger than anything a real service sends. */
export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge';
}

/** Bytes that all answers being read hold together. */
type ByteBudget = ReturnType<typeof createByteBudget>;

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
