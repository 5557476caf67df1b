import Router, { type RouterMiddleware } from '@koa/router';
import Koa from 'koa';
import { storageProblem } from '../lib/storage-errors.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { isRouterTarget } from '../dialects/router-refusal.ts';
import { type Logger, requestId } from '../observability/log.ts';
import { withoutSecret } from '../observability/secret-redactor.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import { V1Error, plainError, retryAfterHeader, ruleFault, sendEmpty } from '../dialects/errors.ts';
import { DEPRECATION_HEADERS } from '../migration/deprecation.ts';
import { drainRequest } from '../http/drain-request.ts';
import { READ_METHODS } from '../http/server.ts';
import { frontendFallback, notFound, logUnknownRoutes } from './routing/not-found.ts';
import { logRefusal } from './routing/log-refusal.ts';
import { sendError } from '../dialects/error-reply.ts';
import { type V1Route, aliasesOf } from './routes.ts';
import { type ServingOptions, serveRoute, withCaller } from './routing/serve-route.ts';

declare module 'koa' {
  /** The facts about a call in `ctx.state`. */
  interface DefaultState {
    requestId: string;
    dialect?: Dialect;
    caller?: Caller;
    /** The client id in the body, if there is one. */
    clientId?: string;
    /** The prompts that the route has named. */
    promptIds?: readonly string[];
    /** The v2 calls that the call made. */
    v2Calls: string[];
    /** True for a v1 route that was called below `/api`. */
    apiPrefixed?: boolean;
    /** The label in the metrics, where the router has none. */
    answeredBy?: string | undefined;
    /** The workspace whose key calls the model router. */
    modelWorkspace?: string;
  }
}

type V1AppOptions = ServingOptions & {
  readonly routes: {
    /** Runs before authentication: signed downloads, health, pages, models, and v2 itself. */
    readonly public: readonly Koa.Middleware[];
    readonly v1: readonly V1Route[];
  };
  readonly corsOrigin: string | undefined;
  readonly log: Logger;
  /** Throws when the data directory is lost and nothing can be stored any more. */
  readonly checkDataDir: () => void;
};

/** Assembles the HTTP side: the middleware that every call passes, in order, then the v1 routes. */
export function createApp(options: V1AppOptions): Koa {
  const app = new Koa();
  const router = routerOf(options);
  for (const middleware of options.observer.middleware) app.use(middleware);
  app.use(drainRequest);
  app.use(logRequests(options));
  app.use(renderErrors(options));
  app.use(enforceGuard(options));
  if (options.corsOrigin !== undefined) app.use(cors(options.corsOrigin));
  app.use(handleOptions(options.corsOrigin));
  for (const middleware of options.routes.public) app.use(middleware);
  // A path without a v1 route may still be a file of a front end. That is looked up below.
  app.use(router.routes());
  app.use((ctx, next) => withCaller(options, ctx, next));
  if (options.frontend) app.use(frontendFallback(options.frontend));
  app.use(logUnknownRoutes(options.log));
  app.use(notFound(router));
  app.on('error', (error: unknown) =>
    options.log.debug({ event: 'response.aborted', err: error }, 'the response was cut short'),
  );
  return app;
}

/**
 * Builds the router. v1 serves every route below `/api` too.
 */
function routerOf(options: V1AppOptions): Router {
  const router = new Router({ strict: true, sensitive: true });
  for (const route of options.routes.v1) {
    const [method = '', ownPath = ''] = route.name.split(' ');
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
    for (const path of aliasesOf(ownPath)) {
      const serve = serveRoute(options, route, path) as unknown as RouterMiddleware;
      router.register(path, methods, serve);
    }
  }
  return router;
}

function logRequests({ log, auth, observer }: V1AppOptions): Koa.Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    const id = requestId(ctx.get('X-Request-Id') || undefined);
    const v2Calls: string[] = [];
    const client = auth.addresses.clientOf(ctx.req);
    ctx.state.v2Calls = v2Calls;
    ctx.state.requestId = id;
    ctx.state.dialect = auth.dialects.ofCall(ctx.req);
    ctx.set('X-Request-Id', id);
    ctx.set('X-Content-Type-Options', 'nosniff');
    await next();
    const { method, status, url } = ctx;
    const { user, credential }: Partial<Caller> = ctx.state.caller ?? {};
    const ms = Math.round(performance.now() - startedAt);
    const call = { id, user, client, method, url: loggedUrl(url, credential), status, ms };
    log.info({ event: 'request.answered', ...call, v2: v2Calls }, 'request answered');
    observer.onAnswered({ method, url, status, ms, user, promptIds: promptIdsOf(ctx) }, ctx.req);
  };
}

/** Returns the address without the key of its caller, whichever parameter that is in. */
function loggedUrl(url: string, credential: string | undefined): string {
  const shown = withoutCredentials(url);
  return shown.includes('?') ? withoutSecret(shown, credential) : shown;
}

/** The paths of prompts. Settings and assets have ids of their own in their paths. */
const PROMPT_PATH = /\/(history|history_v2|jobs?)\//;

/**
 * Returns the prompts that a call is about: those that its route has named, and the id in its path.
 */
function promptIdsOf(ctx: Koa.Context): readonly string[] {
  const { params } = ctx as { readonly params?: { readonly id?: string } };
  const isInPath = params?.id !== undefined && PROMPT_PATH.test(ctx.path);
  const inPath = isInPath ? [params.id] : [];
  return [...(ctx.state.promptIds ?? []), ...inPath];
}

/**
 * Turns an error into an answer; no other place does. Internal details are never shown. A change is acknowledged only
 * while the data directory is still there; calls that were passed through have their answer already.
 */
function renderErrors({ log, checkDataDir }: V1AppOptions): Koa.Middleware {
  return async (ctx, next) => {
    try {
      await next();
      const isChange = !READ_METHODS.has(ctx.method) && ctx.status < 400;
      if (isChange && !ctx.headerSent) checkDataDir();
    } catch (error) {
      sendError(ctx, error instanceof V1Error ? error : unexpectedError(log, ctx, error));
    }
  };
}

function unexpectedError(log: Logger, ctx: Koa.Context, error: unknown): V1Error {
  const { caller, requestId: id } = ctx.state;
  log.error({ event: 'request.failed', id, user: caller?.user, err: error }, 'request failed');
  const { status, code, message, retryAfterSeconds } = storageProblem(error) ?? INTERNAL_ERROR;
  const headers = retryAfterHeader(retryAfterSeconds);
  return new V1Error(status, plainError(code, message), { headers });
}

const INTERNAL_ERROR = {
  status: 500,
  code: 'internal_error',
  message: 'The server could not serve this call.',
  retryAfterSeconds: undefined,
};

function enforceGuard(options: V1AppOptions): Koa.Middleware {
  return (ctx, next) => {
    const refusal = options.auth.guard(ctx.req);
    if (refusal === undefined) return next();
    logRefusal(options, ctx.req, refusal);
    const { status, rule, message } = refusal;
    const headers = status === 431 ? { Connection: 'close' } : {};
    sendError(ctx, { status, fault: ruleFault(rule, message), headers });
  };
}

/** Request headers that clients of either API send. */
const ALLOWED_REQUEST_HEADERS = [
  'Content-Type, Authorization, X-API-Key, Comfy-User, Range',
  'Idempotency-Key, If-None-Match, Last-Event-ID, Comfy-Usage-Source, User-Agent',
  'X-Comfy-Router-Fallback-Provider, X-Service-Router-Fallback-Provider',
].join(', ');

/** Response headers that a page may read; passed-through and router routes list their own. */
const EXPOSED_RESPONSE_HEADERS = [
  'Content-Disposition, Content-Range, Accept-Ranges, ETag, Location, Retry-After, X-Request-Id',
  DEPRECATION_HEADERS,
].join(', ');

/** v1's four CORS headers, and the response headers that a page may read. */
function cors(corsOrigin: string): Koa.Middleware {
  return (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', corsOrigin);
    ctx.set('Access-Control-Allow-Methods', 'POST, GET, DELETE, PUT, PATCH, OPTIONS');
    ctx.set('Access-Control-Allow-Headers', ALLOWED_REQUEST_HEADERS);
    ctx.set('Access-Control-Allow-Credentials', 'true');
    ctx.set('Access-Control-Expose-Headers', EXPOSED_RESPONSE_HEADERS);
    return next();
  };
}

/**
 * Answers `OPTIONS` with an empty 200 on any path, even one that does not exist. Without CORS a
 * call for the model router is passed on: there `OPTIONS` is a method like others.
 */
function handleOptions(corsOrigin: string | undefined): Koa.Middleware {
  return (ctx, next) => {
    if (ctx.method !== 'OPTIONS') return next();
    if (corsOrigin === undefined && isRouterTarget(ctx.url)) return next();
    sendEmpty(ctx);
  };
}
