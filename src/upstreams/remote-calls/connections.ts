import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { DecoratorHandler, type Dispatcher, Pool } from 'undici';
import { createInterimAnswerCounter, TooManyInterimAnswers } from '../../http/interim-answers.ts';
import type { RemoteLimits } from '../remote/limits.ts';
import type { Logger } from '../../observability/log.ts';

type Body = string | AsyncIterable<Buffer>;

export type HttpRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Body | undefined;
  readonly headersTimeoutMs: number;
  /** Most silence within the body; 0: the reader of the body watches for it. */
  readonly bodyTimeoutMs: number;
  /** `bodies` last: they must not take the connections of calls. */
  readonly pool: 'calls' | 'bodies';
  readonly signal?: AbortSignal;
};

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
type WholeAnswer =
  | {
      readonly ok: true;
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly text: string;
    }
  | Extract<HttpAnswer, { ok: false }>;

/** The connections to one origin. */
export type Connections = ReturnType<typeof createConnections>;

/** Redirects are not followed by this client at all; credentials cannot leave the origin. */
export function createConnections(
  origin: string,
  limits: Pick<
    RemoteLimits,
    'connectTimeoutMs' | 'connections' | 'maxAnswerBytes' | 'maxAnswersBytes' | 'readTimeoutMs'
  >,
) {
  const connect = { timeout: limits.connectTimeoutMs };
  const pools = {
    calls: new Pool(origin, { connect, connections: limits.connections, pipelining: 1 }),
    bodies: new Pool(origin, { connect, pipelining: 1 }),
  };
  const trackedPools = {
    calls: pools.calls.compose(trackSending),
    bodies: pools.bodies.compose(trackSending),
  };
  const bounds = {
    maxBytes: limits.maxAnswerBytes,
    budget: createByteBudget(limits.maxAnswersBytes),
    maxBodyMs: limits.readTimeoutMs * 2,
  };
  async function send(request: HttpRequest): Promise<HttpAnswer> {
    const sendState: SendState = { wasSent: false };
    try {
      const answer = await trackedPools[request.pool].request({
        ...optionsOf(request),
        opaque: sendState,
      });
      const { statusCode: status, headers, body } = answer;
      // The reader of a body receives its error; a body without a reader must not end the
      // process.
      body.on('error', () => {});
      return { ok: true, status, headers, body };
    } catch (error) {
      const cause = error instanceof Error ? error : new Error(String(error));
      return { ok: false, wasSent: sendState.wasSent, cause };
    }
  }
  return {
    send,
    /** The same with the body read to its end. */
    async sendAndCollect(request: HttpRequest): Promise<WholeAnswer> {
      const answer = await send(request);
      return answer.ok ? collectAnswer(answer, bounds) : answer;
    },
    async close(): Promise<void> {
      await Promise.all([pools.calls.destroy(), pools.bodies.destroy()]);
    },
  };
}

type AnswerBounds = {
  readonly maxBytes: number;
  /** Most bytes that the answers of all calls may hold together. */
  readonly budget: ByteBudget;
  /** For all of the body, however it trickles in. */
  readonly maxBodyMs: number;
};

/** Reads a body to its end; one that passes a bound fails with `AnswerTooLarge`. */
async function collectAnswer(
  { status, headers, body }: Extract<HttpAnswer, { ok: true }>,
  { maxBytes, budget, maxBodyMs }: AnswerBounds,
): Promise<WholeAnswer> {
  const chunks: Buffer[] = [];
  let size = 0;
  const tooLate = new Error('the answer took too long');
  const timer = setTimeout(() => body.destroy(tooLate), maxBodyMs);
  try {
    if (Number(headers['content-length']) > maxBytes)
      throw new AnswerTooLarge(`it has ${headers['content-length']} bytes`);
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (size + chunk.length > maxBytes)
        throw new AnswerTooLarge(`it has more than ${maxBytes} bytes`);
      if (!budget.reserve(chunk.length))
        throw new AnswerTooLarge('the answers that are being read have too many bytes');
      size += chunk.length;
      chunks.push(chunk);
    }
    return { ok: true, status, headers, text: Buffer.concat(chunks, size).toString('utf8') };
  } catch (error) {
    body.destroy();
    return { ok: false, wasSent: true, cause: error as Error };
  } finally {
    clearTimeout(timer);
    budget.release(size);
  }
}

type SendState = { wasSent: boolean };

function optionsOf(request: HttpRequest): Dispatcher.RequestOptions<null> {
  const { method, path, headers, body, headersTimeoutMs, bodyTimeoutMs, signal } = request;
  const options: Dispatcher.RequestOptions<null> = {
    method,
    path,
    headers,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
  };
  if (body !== undefined) options.body = body as NonNullable<Dispatcher.DispatchOptions['body']>;
  if (signal) options.signal = signal;
  return options;
}

/** A request that never got a connection was not sent, whatever its error says. */
function trackSending(dispatch: Dispatcher['dispatch']): Dispatcher['dispatch'] {
  return (options, handler) => {
    const { opaque } = options as { readonly opaque?: SendState };
    return dispatch(options, opaque ? new SendTracker(handler, opaque) : handler);
  };
}

type Handler = Dispatcher.DispatchHandler;

/** The methods exist; only the type lacks them. */
const Decorator = DecoratorHandler as unknown as new (handler: Handler) => {
  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void;
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    ...more: readonly unknown[]
  ): void;
};

class SendTracker extends Decorator {
  readonly #sendState: SendState;
  readonly #countInterim = createInterimAnswerCounter();

  constructor(handler: Handler, sendState: SendState) {
    super(handler);
    this.#sendState = sendState;
  }

  override onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#sendState.wasSent = true;
    super.onRequestStart(controller, context);
  }

  /** Interim answers end here: no caller waits for one, and the library takes a second head for a fault. */
  override onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    ...more: readonly unknown[]
  ): void {
    if (status < 200) this.#countInterim();
    else super.onResponseStart(controller, status, ...more);
  }
}

/** A body that never ends, or is larger than anything an honest service sends. */
class AnswerTooLarge extends Error {
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
type ByteBudget = ReturnType<typeof createByteBudget>;

function createByteBudget(maxBytes: number) {
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
