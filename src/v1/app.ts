import { randomUUID } from 'node:crypto';
import Router, { type RouterMiddleware } from '@koa/router';
import Koa from 'koa';
import { STORAGE_FULL, isStorageFull } from '../lib/storage-full.ts';
import type { Caller } from '../wire/jobs.ts';
import { isOfRouter, routerRefusal } from '../wire/router-refusal.ts';
import { type Logger, logAnswer, requestId } from '../telemetry.ts';
import type { Dialects } from './dialect.ts';
import { V1Error, plainError, sendEmpty } from './errors.ts';
import type { Guard } from './guard.ts';
import { LEAVING_HEADERS } from './leaving.ts';
import { drainRequest } from './linger.ts';
import { behindRoutes, nobodyHome, noteUnknown } from './nobody-home.ts';
import { createPlainRoutes } from './plain-routes.ts';
import { logRefusal, refusalAnswer } from './refused.ts';
import { failedCall, sendError } from './send-error.ts';
import { type V1Route, twinsOf } from './routes.ts';
import { type ServingDeps, serving, setCacheHeaders, withCaller } from './serving.ts';

type Deps = ServingDeps & {
  readonly dialects: Dialects;
  readonly guard: Guard;
  readonly routes: readonly V1Route[];
  /** Asked before any route, and before authentication: signed downloads. */
  readonly first?: readonly Koa.Middleware[];
  /** Served before authentication as well: health, pages, models, v2 itself. */
  readonly through?: readonly Koa.Middleware[];
  readonly corsOrigin: string | undefined;
  readonly log: Logger;
  /** For the line of each request. */
  readonly answers: Logger;
  /** Throws when nothing can be kept any more. */
  readonly checkFolder?: () => void;
  /** Sees every request before all others, and its answer after them. */
  readonly count?: Koa.Middleware | undefined;
};

/** Assembles the HTTP side: what every call passes, in order, then the routes of the old API. */
export function createApp(deps: Deps): Koa {
  const app = new Koa();
  const { router, byName } = routerOf(deps);
  if (deps.count) app.use(deps.count);
  app.use(drainRequest);
  app.use(observe(deps));
  app.use(renderErrors(deps.log));
  app.use(keptOnly(deps.checkFolder));
  app.use(refuseStrangers(deps));
  app.use(cors(deps.corsOrigin));
  app.use(answerOptions(deps.corsOrigin));
  for (const middleware of deps.first ?? []) app.use(middleware);
  app.use(byName);
  for (const middleware of deps.through ?? []) app.use(middleware);
  // What is no route of v1's may still be a file of a front end: that is asked for below.
  app.use(router.routes());
  app.use((ctx, next) =>
    withCaller(deps, ctx, async () => {
      await next();
      setCacheHeaders(ctx);
    }),
  );
  if (deps.frontEnd) app.use(behindRoutes(deps.frontEnd));
  app.use(noteUnknown(deps.log));
  app.use(nobodyHome(router));
  app.on('error', (error: unknown) => deps.log.debug({ error }, 'response was cut short'));
  return app;
}

/** v1 serves every route twice; `ctx.state.apiPrefixed` tells which twin was called. */
function routerOf(deps: Deps): { readonly router: Router; readonly byName: Koa.Middleware } {
  const { routes } = deps;
  const router = new Router({ strict: true, sensitive: true });
  const plain = createPlainRoutes();
  for (const route of routes) {
    const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
    for (const path of twinsOf(route)) {
      const serve = serving(deps, route, { apiPrefixed: path.startsWith('/api/') });
      router.register(path, methods, serve as unknown as RouterMiddleware);
      plain.add(path, methods, serve);
    }
  }
  return { router, byName: plain.serve };
}

function observe({ answers, dialects, addresses }: Deps): Koa.Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    const id = requestId(ctx.get('X-Request-Id') || undefined);
    const v2: string[] = [];
    const client = addresses.clientOf(ctx.req);
    ctx.state.v2Calls = v2;
    ctx.state.requestId = id;
    ctx.state.dialect = dialects.ofCall(ctx.req);
    ctx.set('X-Request-Id', id);
    ctx.set('X-Content-Type-Options', 'nosniff');
    await next();
    const { method, status, url } = ctx;
    const user = (ctx.state.caller as Caller | undefined)?.user;
    logAnswer(answers, { id, user, client, method, url, status, startedAt, v2 });
  };
}

/** The one place where an error becomes an answer; nothing internal is ever shown. */
function renderErrors(log: Logger): Koa.Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const known = error instanceof V1Error ? error : unforeseen(log, ctx, error);
      if (refuseInRouter(ctx, known)) return;
      sendError(ctx, known);
    }
  };
}

function unforeseen(log: Logger, ctx: Koa.Context, error: unknown): V1Error {
  const { caller, requestId: id } = ctx.state as { caller?: Caller; requestId: string };
  log.error({ id, user: caller?.user, err: error }, 'request failed');
  const { status, code, message } = isStorageFull(error) ? NO_ROOM : BROKEN;
  return new V1Error(status, plainError(code, message));
}

/** A change is acknowledged only while the place it is kept in is still there. */
function keptOnly(checkFolder = (): void => {}): Koa.Middleware {
  return async (ctx, next) => {
    await next();
    if (!READS.has(ctx.method) && ctx.status < 400) checkFolder();
  };
}

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

const BROKEN = {
  status: 500,
  code: 'internal_error',
  message: 'The server could not serve this call.',
} as const;
const NO_ROOM = { status: 507, code: 'insufficient_storage', message: STORAGE_FULL } as const;

/** Whether it was for the router to say; then it has been said in its words. */
function refuseInRouter(ctx: Koa.Context, { status, headers }: V1Error): boolean {
  const refusal = routerRefusal(ctx.url, status, randomUUID);
  if (refusal === undefined) return false;
  ctx.status = status;
  ctx.set({ ...headers, ...refusal.headers });
  ctx.body = refusal.body;
  return true;
}

function refuseStrangers(deps: Deps): Koa.Middleware {
  return (ctx, next) => {
    const refusal = deps.guard(ctx.req);
    if (refusal === undefined) return next();
    logRefusal(deps, ctx.req, refusal);
    const { status, headers, body } = refusalAnswer(failedCall(ctx), refusal);
    ctx.status = status;
    ctx.set(headers);
    ctx.body = body;
  };
}

/** What clients of either API really send. */
const SENT_HEADERS = [
  'Content-Type, Authorization, X-API-Key, Comfy-User, Range',
  'Idempotency-Key, If-None-Match, Last-Event-ID, Comfy-Usage-Source, User-Agent',
  'X-Comfy-Router-Fallback-Provider, X-Service-Router-Fallback-Provider',
].join(', ');

/** What a page may read; passed-on and router answers name theirs themselves. */
const READ_HEADERS = [
  'Content-Disposition, Content-Range, Accept-Ranges, ETag, Location, Retry-After, X-Request-Id',
  LEAVING_HEADERS,
].join(', ');

/** v1's four headers, and what a page may read. */
function cors(corsOrigin: string | undefined): Koa.Middleware {
  return (ctx, next) => {
    if (corsOrigin !== undefined) {
      ctx.set('Access-Control-Allow-Origin', corsOrigin);
      ctx.set('Access-Control-Allow-Methods', 'POST, GET, DELETE, PUT, PATCH, OPTIONS');
      ctx.set('Access-Control-Allow-Headers', SENT_HEADERS);
      ctx.set('Access-Control-Allow-Credentials', 'true');
      ctx.set('Access-Control-Expose-Headers', READ_HEADERS);
    }
    return next();
  };
}

/**
 * `OPTIONS` on any path, even one that does not exist, is 200 and empty. To the router it is a method
 * like others, unless a page asks what it may call.
 */
function answerOptions(corsOrigin: string | undefined): Koa.Middleware {
  return (ctx, next) => {
    const isForRouter = corsOrigin === undefined && isOfRouter(ctx.url);
    if (ctx.method !== 'OPTIONS' || isForRouter) return next();
    sendEmpty(ctx);
  };
}
