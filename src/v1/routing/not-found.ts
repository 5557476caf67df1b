import type Router from '@koa/router';
import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import type { Logger } from '../../observability/log.ts';
import { V1Error, emptyError } from '../../dialects/errors.ts';
import { sendError } from '../../dialects/error-reply.ts';
import { atMost } from '../../lib/lru-size.ts';
import { textStart } from '../../observability/text-start.ts';

/** The paths outside v1's static root: `/internal/*` and everything below `//`. */
const NO_STATIC_ROOT = /^\/(internal)?\//;

/** Serves a front end where a path may have files behind it. */
export function frontendFallback(frontEnd: Koa.Middleware): Koa.Middleware {
  return (ctx, next) => (NO_STATIC_ROOT.test(ctx.path) ? next() : frontEnd(ctx, next));
}

const MAX_REMEMBERED = 1000;

/** Logs each unknown route once, however often it is called. */
export function logUnknownRoutes(log: Logger): Koa.Middleware {
  const seen = new LRUCache<string, true>(atMost(MAX_REMEMBERED));
  return async (ctx, next) => {
    await next();
    const { method, path, status } = ctx;
    const shownPath = textStart(path, 200);
    const key = `${method} ${shownPath}`;
    if (seen.has(key)) return;
    seen.set(key, true);
    const user = ctx.state.caller?.user;
    const route = { user, method, path: shownPath, status };
    log.info({ event: 'route.unknown', ...route }, 'unknown route');
  };
}

/**
 * Answers unknown paths as v1 does, where they fall into the static root: an empty 404 for a GET,
 * else a 405 that allows GET. A known path with another method gets the list of its methods.
 * `/internal/*` and `//…` are outside the static root and get an answer with a text.
 */
export function notFound(router: Router): Koa.Middleware {
  return (ctx) => {
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    const allowedMethods = new Set(
      router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods),
    );
    const isInternal = NO_STATIC_ROOT.test(ctx.path);
    if (isInternal && allowedMethods.size === 0)
      return sendError(ctx, new V1Error(404, '404: Not Found'));
    if (isRead && !isInternal) {
      sendError(ctx, emptyError(404, 'There is nothing at this path.'));
      if (ctx.response.type === '') ctx.set('Content-Type', 'application/octet-stream');
      return;
    }
    if (!isInternal && (allowedMethods.size === 0 || allowedMethods.has('POST')))
      for (const method of ['GET', 'HEAD']) allowedMethods.add(method);
    ctx.set('Allow', [...allowedMethods].toSorted().join(','));
    sendError(ctx, new V1Error(405, '405: Method Not Allowed'));
  };
}
