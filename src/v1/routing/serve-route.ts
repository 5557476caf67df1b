import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { CallCauses } from '../../observability/call-causes.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { NO_VALID_KEY, V1Error } from '../../dialects/errors.ts';
import type { CallChecks } from '../../auth/guard.ts';
import type { HttpCall } from '../../observability/traffic-log.ts';
import type { Deprecation } from '../../migration/deprecation.ts';
import type { V1Request, V1Route } from '../routes.ts';
import { agentOf, clientIdIn, isOwnCall } from '../../auth/calling-client.ts';

export type ServingOptions = {
  readonly auth: CallChecks;
  readonly observer: {
    readonly causes: CallCauses;
    /** Called when the caller of a request is known. */
    readonly onCaller: (request: IncomingMessage, caller: Caller) => void;
    /** Called with each answered call, where calls are traced. */
    readonly onAnswered: (call: HttpCall, request: IncomingMessage) => void;
    /** The outermost middleware: it counts and traces every request and its answer. */
    readonly middleware: readonly Koa.Middleware[];
  };
  /** Tells v1 clients of the end of their API. */
  readonly deprecation: Deprecation;
  /** Serves files where no route answers. */
  readonly frontend: Koa.Middleware | undefined;
};

/** Serves the calls of a route at one of its paths, with the headers of its deprecation. */
export function serveRoute(options: ServingOptions, route: V1Route, path: string): Koa.Middleware {
  const { deprecation, auth } = options;
  const apiPrefixed = path.startsWith('/api/');
  return async (ctx) => {
    const params = paramsOf(ctx);
    ctx.set(deprecation.headersFor(route.name, params, auth.addresses.prefixOf(ctx.req)));
    ctx.state.apiPrefixed = apiPrefixed;
    await withCaller(options, ctx, async (caller) => {
      const query = new URLSearchParams(ctx.querystring);
      const request = { ctx, caller, params, query };
      if (isOwnCall(ctx.req)) await route.handle(request);
      else await serveClient(deprecation, route, request);
    });
  };
}

/** Serves a call of a client unless a brownout refuses it, and counts it. */
async function serveClient(
  deprecation: Deprecation,
  route: V1Route,
  request: V1Request,
): Promise<void> {
  const { ctx, caller } = request;
  const client = { user: caller.user, agent: agentOf(ctx.req) };
  try {
    const refused = await deprecation.brownoutRefusal(route.name, client);
    if (refused) throw refused;
    await route.handle(request);
  } finally {
    const clientId = ctx.state.clientId || clientIdIn(ctx.querystring);
    deprecation.countCall({ ...client, clientId, route: route.name });
  }
}

function paramsOf(ctx: object): { readonly [name: string]: string } {
  return (ctx as { readonly params?: { readonly [name: string]: string } }).params ?? {};
}

/** Authenticates the call and serves it, or answers 401. */
export async function withCaller(
  options: ServingOptions,
  ctx: Koa.Context,
  serve: (caller: Caller) => Promise<void>,
): Promise<void> {
  const { auth, observer, frontend } = options;
  const caller = await auth.authenticate(ctx.req);
  if (caller === undefined) {
    const challenge = frontend !== undefined && opensPage(ctx) ? BASIC_OR_BEARER : 'Bearer';
    throw new V1Error(401, NO_VALID_KEY, { headers: { 'WWW-Authenticate': challenge } });
  }
  ctx.state.caller = caller;
  observer.onCaller(ctx.req, caller);
  const cause = observer.causes.causeOf(caller);
  cause.v2Calls = ctx.state.v2Calls;
  try {
    await serve(caller);
  } finally {
    cause.v2Calls = undefined;
  }
}

/** Makes a browser ask its user for a key (as the password) and send it from then on. */
const BASIC_OR_BEARER = 'Basic realm="Holdover", charset="UTF-8", Bearer';

function opensPage(ctx: Koa.Context): boolean {
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
  const isNavigation = (ctx.get('Sec-Fetch-Mode') || 'navigate') === 'navigate';
  return isRead && isNavigation && ctx.get('Accept').includes('text/html');
}
