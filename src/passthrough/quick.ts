import { createRequire } from 'node:module';
import type Koa from 'koa';
import type { buildConnector } from 'undici';
import type { Order, Outcome } from './call.ts';
import { createQuickCall } from './quick-call.ts';
import { readSmallBody, smallLength } from './small-body.ts';

/** The way of small calls to one upstream: each is sent when all of it is here. */
export type QuickWay = {
  /** Whether a call may go this way. */
  takes(ctx: Koa.Context): boolean;
  /** Sends a call on once. */
  send(ctx: Koa.Context, order: Order): Promise<Outcome>;
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
    connect: noticing(breaks, undici.buildConnector({ timeout: connectTimeoutMs })),
    pipelining: 1,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
  });
  let underWay = 0;

  async function send(ctx: Koa.Context, order: Order): Promise<Outcome> {
    const length = smallLength(ctx.req) ?? 0;
    const body = length > 0 ? await readSmallBody(ctx.req, length) : undefined;
    if (length > 0 && body === undefined) {
      ctx.respond = false;
      return 'answered';
    }
    if (body) order.ear?.onRequest(body);
    return new Promise((resolve) => {
      const { path, headers } = order;
      const handler = createQuickCall({ ctx, order, silenceMs, breaks, resolve });
      pool.dispatch({ path, method: ctx.method, headers, body: body ?? null }, handler);
    });
  }

  return {
    takes(ctx) {
      if (underWay >= MOST_AT_ONCE) return false;
      const length = smallLength(ctx.req);
      if (length === undefined || ctx.get('Accept').includes('text/event-stream')) return false;
      if (WITH_BODY.has(ctx.method)) return true;
      return WITHOUT_BODY.has(ctx.method) && ctx.req.headers['content-length'] === undefined;
    },
    async send(ctx, order) {
      underWay++;
      try {
        return await send(ctx, order);
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
