import { type Dispatcher, Pool } from 'undici';
import { TooManyInterimAnswers } from '../../http/head-limits.ts';
import type { RemoteLimits } from '../limits.ts';
import type { Logger } from '../../observability/log.ts';
import {
  type AnswerBounds,
  AnswerTooLarge,
  type HttpAnswer,
  type WholeAnswer,
  openAnswer,
  readWhole,
} from './exchange.ts';

export type { HttpAnswer } from './exchange.ts';

type Body = string | AsyncIterable<Buffer>;

export type HttpRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Body | undefined;
  readonly headersTimeoutMs: number;
  /** The longest silence within the body. 0: the reader of the body checks this. */
  readonly bodyTimeoutMs: number;
  /** `bodies` is a pool of its own: bodies must not occupy the connections of calls. */
  readonly pool: 'calls' | 'bodies';
  readonly signal?: AbortSignal | undefined;
};

/** The connections to one origin. */
export interface Connections {
  readonly send: (request: HttpRequest) => Promise<HttpAnswer>;
  /** Sends a request and reads the whole body of its answer. */
  readonly sendAndCollect: (request: HttpRequest) => Promise<WholeAnswer>;
  close(): Promise<void>;
}

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

/** Opens connections. This client follows no redirects, so credentials cannot leave the origin. */
export function createConnections(
  origin: string,
  limits: RemoteLimits,
  /** `undefined`: no call is traced. */
  traceHeaders?: () => HttpRequest['headers'],
): Connections {
  const connect = { timeout: limits.connectTimeoutMs };
  const pools = {
    calls: new Pool(origin, { connect, connections: limits.connections, pipelining: 1 }),
    bodies: new Pool(origin, { connect, pipelining: 1 }),
  };
  const bounds: AnswerBounds = {
    maxBytes: limits.maxAnswerBytes,
    maxBytesTogether: limits.maxAnswersBytes,
    bytesTogether: 0,
    maxBodyMs: limits.readTimeoutMs * 2,
  };
  function optionsOf(request: HttpRequest) {
    const { method, path, headers, body = null, signal = null } = request;
    return {
      method,
      path,
      headers: traceHeaders ? { ...headers, ...traceHeaders() } : headers,
      headersTimeout: request.headersTimeoutMs,
      bodyTimeout: request.bodyTimeoutMs,
      signal,
      body: body as NonNullable<Dispatcher.DispatchOptions['body']>,
    };
  }
  return {
    send: (request) => openAnswer(pools[request.pool], optionsOf(request)),
    async sendAndCollect(request) {
      let wasSent = false;
      const options: Sent = { ...optionsOf(request), onSent: () => (wasSent = true) };
      const answer = await openAnswer(pools[request.pool].compose(tellWhenSent), options);
      if (!answer.ok) return { ...answer, wasSent };
      const { status, headers } = answer;
      try {
        return { ok: true, status, headers, text: await readWhole(answer, bounds) };
      } catch (cause) {
        return { ok: false, wasSent, cause: cause as Error };
      }
    },
    async close() {
      await Promise.all([pools.calls.destroy(), pools.bodies.destroy()]);
    },
  };
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
