import Router, { type RouterMiddleware } from '@koa/router';
import Koa from 'koa';
import type { V1RouteName } from '../translate/successors.ts';
import type { Caller } from '../wire/jobs.ts';
import { type Logger, logAnswer, requestId } from '../telemetry.ts';
import { V1Error, plainError, sendEmpty, sendJson, sendText } from './errors.ts';
import type { Guard } from './guard.ts';
import type { Authenticate } from './identity.ts';
import { LEAVING_HEADERS, type Leaving } from './leaving.ts';
import { linger } from './linger.ts';
import { behindRoutes, nobodyHome, noteUnknown } from './nobody-home.ts';
import { createPlainRoutes } from './plain-routes.ts';
import { type V1Route, nameOf } from './routes.ts';
import { agentOf, isOwnPage } from './visitor.ts';

type Deps = {
  readonly guard: Guard;
  readonly authenticate: Authenticate;
  readonly routes: readonly V1Route[];
  /** Served before authentication, without v2 calls that are worth a note: health, pages, v2 itself. */
  readonly through?: readonly Koa.Middleware[];
  /** Served before authentication as well: signed downloads, models. */
  readonly open: readonly Koa.Middleware[];
  readonly corsOrigin: string | undefined;
  readonly log: Logger;
  /** For the line of each request. */
  readonly answers: Logger;
  /** Sees every request before all others, and its answer after them. */
  readonly count?: Koa.Middleware | undefined;
  /** Lists the v2 calls made for a caller while a request of his is served. */
  readonly trace: {
    readonly begin: (caller: Caller, calls: string[]) => void;
    readonly end: (caller: Caller) => void;
  };
  /** Tells v1 clients of the end of their API. */
  readonly leaving?: Leaving | undefined;
  /** Serves files where no route answers. */
  readonly frontEnd?: Koa.Middleware | undefined;
};

/** Assembles the HTTP side: what every call passes, in order, then the routes of the old API. */
export function createApp(deps: Deps): Koa {
  const app = new Koa();
  const { router, byName } = routerOf(deps);
  if (deps.count) app.use(deps.count);
  app.use(linger);
  app.use(observe(deps));
  app.use(renderErrors(deps.log));
  app.use(refuseStrangers(deps.guard));
  app.use(cors(deps.corsOrigin));
  app.use(answerOptions);
  for (const middleware of deps.through ?? []) app.use(middleware);
  for (const middleware of deps.open) app.use(middleware);
  // What is no route of v1's may still be a file of a front end: that is asked for below.
  app.use(byName);
  app.use(router.routes());
  app.use(knowCaller(deps));
  app.use(cacheHeaders);
  if (deps.frontEnd) app.use(behindRoutes(deps.frontEnd));
  app.use(noteUnknown(deps.log));
  app.use(nobodyHome(router));
  app.on('error', (error: unknown) => deps.log.debug({ error }, 'response was cut short'));
  return app;
}

/** v1 serves every route twice; `ctx.state.apiPrefixed` tells which twin was called. */
function routerOf(deps: Deps): { readonly router: Router; readonly byName: Koa.Middleware } {
  const { routes, leaving } = deps;
  const known = knowCaller(deps);
  const router = new Router({ strict: true, sensitive: true });
  const plain = createPlainRoutes();
  for (const route of routes) {
    const twins =
      route.path.startsWith('/internal/') || route.path.startsWith('/api/') ? [''] : ['', '/api'];
    for (const prefix of twins) {
      const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
      const apiPrefixed = prefix === '/api' || route.path.startsWith('/api/');
      const chain = [
        ...(leaving ? [announce(leaving, nameOf(route))] : []),
        known,
        ...(leaving ? [attend(leaving, nameOf(route))] : []),
        cacheHeaders,
        handling(route, apiPrefixed),
      ];
      router.register(prefix + route.path, methods, chain as unknown as RouterMiddleware[]);
      plain.add(prefix + route.path, methods, chain);
    }
  }
  return { router, byName: plain.serve };
}

function handling(route: V1Route, apiPrefixed: boolean): Koa.Middleware {
  return async (ctx) => {
    ctx.state.apiPrefixed = apiPrefixed;
    const { caller } = ctx.state as { readonly caller: Caller };
    const query = new URLSearchParams(ctx.querystring);
    await route.handle({ ctx: ctx as Koa.Context, caller, params: paramsOf(ctx), query });
  };
}

function announce(leaving: Leaving, route: V1RouteName): Koa.Middleware {
  return (ctx, next) => {
    for (const [name, value] of Object.entries(leaving.headersFor(route, paramsOf(ctx)))) {
      ctx.append(name, value);
    }
    return next();
  };
}

/** Holdover's own page is nobody who must leave. */
function attend(leaving: Leaving, route: V1RouteName): Koa.Middleware {
  return async (ctx, next) => {
    if (isOwnPage(ctx.req)) return await next();
    const { user } = ctx.state.caller as Caller;
    const agent = agentOf(ctx.req);
    try {
      await leaving.rehearse(route, { user, agent });
      await next();
    } finally {
      const { clientId = '' } = ctx.state as { readonly clientId?: string };
      leaving.count({ user, agent, clientId, route });
    }
  };
}

function paramsOf(ctx: object): { readonly [name: string]: string } {
  return (ctx as { readonly params?: { readonly [name: string]: string } }).params ?? {};
}

function observe({ answers }: Deps): Koa.Middleware {
  return async (ctx, next) => {
    const startedAt = performance.now();
    const id = requestId(ctx.get('X-Request-Id') || undefined);
    const v2: string[] = [];
    ctx.state.v2Calls = v2;
    ctx.state.requestId = id;
    ctx.set('X-Request-Id', id);
    ctx.set('X-Content-Type-Options', 'nosniff');
    await next();
    const { method, status, url } = ctx;
    const user = (ctx.state.caller as Caller | undefined)?.user;
    logAnswer(answers, { id, user, method, url, status, startedAt, v2 });
  };
}

/** The one place where an error becomes an answer; nothing internal is ever shown. */
function renderErrors(log: Logger): Koa.Middleware {
  return async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (!(error instanceof V1Error)) {
        const { caller, requestId: id } = ctx.state as { caller?: Caller; requestId: string };
        log.error({ id, user: caller?.user, err: error }, 'request failed');
        return sendJson(
          ctx,
          plainError('internal_error', 'The server could not serve this call.'),
          500,
        );
      }
      ctx.set(error.headers);
      if (error.body === undefined) sendEmpty(ctx, error.status);
      else if (typeof error.body === 'string') sendText(ctx, error.status, error.body);
      else sendJson(ctx, error.body, error.status);
    }
  };
}

function refuseStrangers(guard: Guard): Koa.Middleware {
  return (ctx, next) => {
    const refusal = guard(ctx.req);
    if (refusal) throw new V1Error(refusal.status);
    return next();
  };
}

/** v1's four headers, with the request headers its clients really send. */
function cors(corsOrigin: string | undefined): Koa.Middleware {
  return (ctx, next) => {
    if (corsOrigin !== undefined) {
      ctx.set('Access-Control-Allow-Origin', corsOrigin);
      ctx.set('Access-Control-Allow-Methods', 'POST, GET, DELETE, PUT, PATCH, OPTIONS');
      ctx.set(
        'Access-Control-Allow-Headers',
        'Content-Type, Authorization, X-API-Key, Comfy-User, Range',
      );
      ctx.set('Access-Control-Allow-Credentials', 'true');
      ctx.set(
        'Access-Control-Expose-Headers',
        `Content-Range, Accept-Ranges, ETag, Location, Retry-After, X-Request-Id, ${LEAVING_HEADERS}`,
      );
    }
    return next();
  };
}

/** `OPTIONS` on any path, even one that does not exist, is 200 and empty. */
const answerOptions: Koa.Middleware = (ctx, next) => {
  if (ctx.method !== 'OPTIONS') return next();
  sendEmpty(ctx);
};

function knowCaller({ authenticate, trace, frontEnd }: Deps): Koa.Middleware {
  return async (ctx, next) => {
    const caller = await authenticate(ctx.req);
    if (caller === undefined) {
      const body = plainError(
        'unauthorized',
        'A valid key is needed: X-API-Key, or Authorization: Bearer.',
      );
      const asked = frontEnd !== undefined && opensPage(ctx) ? BASIC_TOO : 'Bearer';
      throw new V1Error(401, body, { headers: { 'WWW-Authenticate': asked } });
    }
    ctx.state.caller = caller;
    trace.begin(caller, ctx.state.v2Calls as string[]);
    try {
      await next();
    } finally {
      trace.end(caller);
    }
  };
}

/** A browser asks its user for a key (the password), and sends it along from then on. */
const BASIC_TOO = 'Basic realm="Holdover", charset="UTF-8", Bearer';

function opensPage(ctx: Koa.Context): boolean {
  const reads = ctx.method === 'GET' || ctx.method === 'HEAD';
  return reads && (ctx.get('Sec-Fetch-Mode') || 'navigate') === 'navigate' && wantsHtml(ctx);
}

function wantsHtml(ctx: Koa.Context): boolean {
  return ctx.get('Accept').includes('text/html');
}

/** v1 decides caching by what the path looks like, whatever the answer is. */
const cacheHeaders: Koa.Middleware = async (ctx, next) => {
  await next();
  if (ctx.response.get('Cache-Control')) return;
  if (/\.(js|css)$|\/index[^/]*\.json$/.test(ctx.path)) ctx.set('Cache-Control', 'no-cache');
  else if (/\.(jpe?g|png|ppm|bmp|pgm|tiff?|webp)$/.test(ctx.path)) {
    ctx.set('Cache-Control', 'public, max-age=86400');
  }
};
