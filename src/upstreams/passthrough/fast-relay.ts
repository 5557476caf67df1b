import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { buildConnector } from 'undici';
import type { ProxyOutcome } from './proxy-call.ts';
import type { ProxyRequest, ProxyExchange } from './proxy-exchange.ts';
import { skippingContinue } from './skip-continue.ts';
import { createFastCall } from './fast-call.ts';
import { readSmallBody, smallLength } from './small-body.ts';

type Options = {
  readonly connectTimeoutMs: number;
  readonly silenceMs: number;
  readonly keepAliveMs: number;
};

/** The pool scans all its connections for a free one, and never closes idle ones early. */
const MAX_CONCURRENT = 256;

/** For these methods the library adds no length and closes no connection. */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'DELETE']);

/** The way of small calls to one upstream: each is sent when all of it is here. */
export function createFastRelay(origin: string, options: Options) {
  // Loaded only where there is a service: it would slow every start.
  const undici = createRequire(import.meta.url)('undici') as typeof import('undici');
  const { connectTimeoutMs, silenceMs, keepAliveMs } = options;
  const connectionError = { isCurrent: false };
  const pool = new undici.Pool(origin, {
    connect: skippingContinue(
      trackingErrors(connectionError, undici.buildConnector({ timeout: connectTimeoutMs })),
    ),
    pipelining: 1,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
  });
  let active = 0;

  async function send(exchange: ProxyExchange, order: ProxyRequest): Promise<ProxyOutcome> {
    const { req } = exchange;
    const length = smallLength(req) ?? 0;
    const body = length > 0 ? await readSmallBody(req, length) : undefined;
    if (length > 0 && body === undefined) {
      exchange.respond = false;
      return 'answered';
    }
    if (body) order.observer?.onRequest(body);
    return new Promise((resolve) => {
      const { path, headers } = order;
      const handler = createFastCall({ exchange, order, silenceMs, connectionError, resolve });
      pool.dispatch({ path, method: req.method ?? '', headers, body: body ?? null }, handler);
    });
  }

  return {
    /** True when a call may take this path. */
    accepts({ method = '', headers }: IncomingMessage): boolean {
      if (active >= MAX_CONCURRENT || smallLength({ headers }) === undefined) return false;
      if (headers.accept?.includes('text/event-stream')) return false;
      if (WITH_BODY.has(method)) return true;
      return WITHOUT_BODY.has(method) && headers['content-length'] === undefined;
    },
    /** Sends a call on once. */
    async send(exchange: ProxyExchange, order: ProxyRequest): Promise<ProxyOutcome> {
      active++;
      try {
        return await send(exchange, order);
      } finally {
        active--;
      }
    },
    close: (): void => void pool.destroy(),
  };
}

/**
 * The library takes an answer without a length as complete even when its connection was reset. It
 * notices a reset later than this listener, within the same event.
 */
function trackingErrors(
  connectionError: { isCurrent: boolean },
  connect: buildConnector.connector,
): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      result[1]?.prependListener('error', () => {
        connectionError.isCurrent = true;
        queueMicrotask(() => (connectionError.isCurrent = false));
      });
      callback(...result);
    });
}
