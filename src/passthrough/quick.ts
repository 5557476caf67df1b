import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { buildConnector } from 'undici';
import type { Exchange, Order, Outcome } from './call.ts';
import { withoutContinue } from './continue.ts';
import { createQuickCall } from './quick-call.ts';
import { readSmallBody, smallLength } from './small-body.ts';

/** The way of small calls to one upstream: each is sent when all of it is here. */
export type QuickWay = {
  /** Whether a call may go this way. */
  takes(request: IncomingMessage): boolean;
  /** Sends a call on once. */
  send(exchange: Exchange, order: Order): Promise<Outcome>;
  close(): void;
};

type Options = {
  readonly connectTimeoutMs: number;
  readonly silenceMs: number;
  readonly idleMs: number;
};

/** The pool looks at all its connections for a free one, and never has fewer. */
const MOST_AT_ONCE = 256;

/** Of these the library sends exactly what it is given: no length of its own, no connection closed. */
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'DELETE']);

export function createQuickWay(origin: string, options: Options): QuickWay {
  // Loaded only where there is a service: it would slow every start.
  const undici = createRequire(import.meta.url)('undici') as typeof import('undici');
  const { connectTimeoutMs, silenceMs, idleMs } = options;
  const breaks = { isOne: false };
  const pool = new undici.Pool(origin, {
    connect: withoutContinue(
      noticing(breaks, undici.buildConnector({ timeout: connectTimeoutMs })),
    ),
    pipelining: 1,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
  });
  let underWay = 0;

  async function send(exchange: Exchange, order: Order): Promise<Outcome> {
    const { req } = exchange;
    const length = smallLength(req) ?? 0;
    const body = length > 0 ? await readSmallBody(req, length) : undefined;
    if (length > 0 && body === undefined) {
      exchange.respond = false;
      return 'answered';
    }
    if (body) order.ear?.onRequest(body);
    return new Promise((resolve) => {
      const { path, headers } = order;
      const handler = createQuickCall({ exchange, order, silenceMs, breaks, resolve });
      pool.dispatch({ path, method: req.method ?? '', headers, body: body ?? null }, handler);
    });
  }

  return {
    takes({ method = '', headers }) {
      if (underWay >= MOST_AT_ONCE || smallLength({ headers }) === undefined) return false;
      if (headers.accept?.includes('text/event-stream')) return false;
      if (WITH_BODY.has(method)) return true;
      return WITHOUT_BODY.has(method) && headers['content-length'] === undefined;
    },
    async send(exchange, order) {
      underWay++;
      try {
        return await send(exchange, order);
      } finally {
        underWay--;
      }
    },
    close: () => void pool.destroy(),
  };
}

/**
 * An answer that lasts until its connection ends is a whole one to the library even when that end
 * is a reset. It hears of a reset after us, within the same event.
 */
function noticing(
  breaks: { isOne: boolean },
  connect: buildConnector.connector,
): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      result[1]?.prependListener('error', () => {
        breaks.isOne = true;
        queueMicrotask(() => (breaks.isOne = false));
      });
      callback(...result);
    });
}
