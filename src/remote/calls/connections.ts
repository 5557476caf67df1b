import { type Dispatcher, Pool } from 'undici';
import { TooManyInterimAnswers } from '../../http/head-limits.ts';
import type { RemoteLimits } from '../limits.ts';
import type { Logger } from '../../observability/log.ts';
import {
  type AnswerBounds,
  AnswerTooLarge,
  type HttpAnswer,
  type RequestHeaders,
  type WholeAnswer,
  openAnswer,
  readWhole,
} from './exchange.ts';

export type HttpRequest = Omit<Dispatcher.RequestOptions, 'headers'> & {
  readonly headers: RequestHeaders;
};

type Sent = Dispatcher.RequestOptions & { readonly onSent?: () => void };

/** Tells when a request has a connection: before, it was not sent, whatever its error says. */
const tellWhenSent: Dispatcher.DispatcherComposeInterceptor =
  (dispatch) =>
  ({ onSent, ...options }: Sent, handler) =>
    dispatch(options, {
      onRequestStart(...request) {
        onSent?.();
        handler.onRequestStart?.(...request);
      },
      onResponseStart: (...head) => handler.onResponseStart?.(...head),
      onResponseData: (...chunk) => handler.onResponseData?.(...chunk),
      onResponseEnd: (...end) => handler.onResponseEnd?.(...end),
      onResponseError: (...error) => handler.onResponseError?.(...error),
    });

/** The connections to one origin. They follow no redirects, so credentials cannot leave the origin. */
export class Connections {
  readonly #calls: Pool;
  /** A pool of its own: bodies must not occupy the connections of calls. */
  readonly #bodies: Pool;
  readonly #bounds: AnswerBounds;
  readonly #traceHeaders: () => RequestHeaders;

  constructor(origin: string, limits: RemoteLimits, traceHeaders = (): RequestHeaders => ({})) {
    const connect = { timeout: limits.connectTimeoutMs };
    this.#calls = new Pool(origin, { connect, connections: limits.connections, pipelining: 1 });
    this.#bodies = new Pool(origin, { connect, pipelining: 1 });
    this.#bounds = {
      maxBytes: limits.maxAnswerBytes,
      maxBytesTogether: limits.maxAnswersBytes,
      bytesTogether: 0,
      maxBodyMs: limits.readTimeoutMs * 2,
    };
    this.#traceHeaders = traceHeaders;
  }

  /** Sends a request. The caller reads the body of its answer. */
  send(request: HttpRequest): Promise<HttpAnswer> {
    return openAnswer(this.#bodies, this.#traced(request));
  }

  /** Sends a request and reads the whole body of its answer. */
  async sendAndCollect(request: HttpRequest): Promise<WholeAnswer> {
    let wasSent = false;
    const options: Sent = { ...this.#traced(request), onSent: () => (wasSent = true) };
    const hasBytes = typeof request.body === 'object' && request.body !== null;
    const pool = hasBytes ? this.#bodies : this.#calls;
    const answer = await openAnswer(pool.compose(tellWhenSent), options);
    if (!answer.ok) return { ...answer, wasSent };
    const { status, headers } = answer;
    try {
      return { ok: true, status, headers, text: await readWhole(answer, this.#bounds) };
    } catch (cause) {
      return { ok: false, wasSent, cause: cause as Error };
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.destroy(), this.#bodies.destroy()]);
  }

  #traced(request: HttpRequest): HttpRequest {
    return { ...request, headers: { ...request.headers, ...this.#traceHeaders() } };
  }
}

/**
 * Returns the part of an answer that was too large; `undefined` when it failed for another reason.
 */
export function tooLargePart(
  cause: Error & { readonly code?: unknown },
): 'body' | 'headers' | undefined {
  if (cause instanceof AnswerTooLarge) return 'body';
  if (cause instanceof TooManyInterimAnswers) return 'headers';
  // The library reads at most 16 KiB of headers, trailers included.
  return cause.code === 'UND_ERR_HEADERS_OVERFLOW' ? 'headers' : undefined;
}

const EVENTS = {
  body: 'upstream.answer_too_large',
  headers: 'upstream.headers_too_large',
} as const;

/** Logs an answer that was cut off for its size. */
export function logTooLarge(
  log: Logger,
  call: { readonly method: string; readonly path: string },
  cause: Error,
): void {
  const part = tooLargePart(cause);
  if (part === undefined) return;
  const [path = ''] = call.path.split('?', 1);
  const fields = { event: EVENTS[part], method: call.method, path, reason: cause.message };
  log.warn(fields, 'cut off an answer of the job service: it is too large');
}
