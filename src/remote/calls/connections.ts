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

/** `bodies` is a pool of its own: bodies must not occupy the connections of calls. */
type PoolName = 'calls' | 'bodies';

type Headers = Readonly<Record<string, string>>;

export type HttpRequest = Omit<Dispatcher.RequestOptions, 'headers'> & {
  readonly headers: Headers;
};

/** The connections to one origin. */
export interface Connections {
  readonly send: (request: HttpRequest, pool: PoolName) => Promise<HttpAnswer>;
  /** Sends a request and reads the whole body of its answer. */
  readonly sendAndCollect: (request: HttpRequest, pool: PoolName) => Promise<WholeAnswer>;
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
  traceHeaders?: () => Headers,
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
  const traced = (request: HttpRequest): HttpRequest =>
    traceHeaders ? { ...request, headers: { ...request.headers, ...traceHeaders() } } : request;
  return {
    send: (request, pool) => openAnswer(pools[pool], traced(request)),
    async sendAndCollect(request, pool) {
      let wasSent = false;
      const options: Sent = { ...traced(request), onSent: () => (wasSent = true) };
      const answer = await openAnswer(pools[pool].compose(tellWhenSent), options);
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
