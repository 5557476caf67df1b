import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { V1RouteName } from '../../migration/v1-routes.ts';
import type { CallCauses } from '../../observability/call-causes.ts';
import type { Caller } from '../../protocol/job-api.ts';
import { NO_VALID_KEY, V1Error } from '../../dialects/errors.ts';
import type { CallChecks } from '../../auth/guard.ts';
import type { HttpCall } from '../../observability/traffic-log.ts';
import type { Deprecation } from '../../migration/deprecation.ts';
import type { V1Route } from '../routes.ts';
import { agentOf, clientIdIn, isOwnCall } from '../../auth/calling-client.ts';

export type ServingOptions = {
  readonly auth: CallChecks;
  readonly observer: {
    readonly causes: CallCauses;
    /** Called when the caller of a request is known. */
    readonly onCaller?: (request: IncomingMessage, caller: Caller) => void;
    /** Called with each answered call, where calls are traced. */
    readonly onAnswered?: (call: HttpCall, request: IncomingMessage) => void;
    /** The outermost middleware: it counts and traces every request and its answer. */
    readonly middleware?: readonly Koa.Middleware[];
  };
  /** Tells v1 clients of the end of their API. */
  readonly deprecation?: Deprecation | undefined;
  /** Serves files where no route answers. */
  readonly frontend?: Koa.Middleware | undefined;
};

/**
 * Serves one call of a route. All of it is one step, since each step costs every call a promise.
 */
export function serveRoute(
  options: ServingOptions,
  route: V1Route,
  { apiPrefixed }: Alias,
): Koa.Middleware {
  const { deprecation, auth } = options;
  const { name } = route;
  const handle = async (ctx: Koa.Context, caller: Caller): Promise<void> => {
    const query = new URLSearchParams(ctx.querystring);
    await route.handle({ ctx, caller, params: paramsOf(ctx), query });
  };
  const countedHandle = deprecation ? withDeprecation(deprecation, name, handle) : handle;
  return async (ctx) => {
    if (deprecation)
      ctx.set(deprecation.headersFor(name, paramsOf(ctx), auth.addresses.prefixOf(ctx.req)));
    ctx.state.apiPrefixed = apiPrefixed;
    await withCaller(options, ctx, countedHandle);
  };
}

type Alias = { readonly apiPrefixed: boolean };
type CallHandler = (ctx: Koa.Context, caller: Caller) => Promise<void>;

/**
 * Adds the deprecation headers. Calls of Holdover's own page and commands are not counted, and no
 * brownout refuses or delays them.
 */
function withDeprecation(
  deprecation: Deprecation,
  route: V1RouteName,
  handle: CallHandler,
): CallHandler {
  return async (ctx, caller) => {
    if (isOwnCall(ctx.req)) return await handle(ctx, caller);
    const { user } = caller;
    const agent = agentOf(ctx.req);
    try {
      const refused = await deprecation.brownoutRefusal(route, { user, agent });
      if (refused) throw refused;
      await handle(ctx, caller);
    } finally {
      const { clientId: clientIdInBody } = ctx.state as { readonly clientId?: string };
      const clientId = clientIdInBody || clientIdIn(ctx.querystring);
      deprecation.countCall({ user, agent, clientId, route });
    }
  };
}

function paramsOf(ctx: object): { readonly [name: string]: string } {
  return (ctx as { readonly params?: { readonly [name: string]: string } }).params ?? {};
}

/** Authenticates the call and serves it, or answers 401. */
export async function withCaller(
  options: ServingOptions,
  ctx: Koa.Context,
  serve: CallHandler,
): Promise<void> {
  const { auth, observer, frontend } = options;
  const caller = await auth.authenticate(ctx.req);
  if (caller === undefined) {
    const challenge = frontend !== undefined && opensPage(ctx) ? BASIC_OR_BEARER : 'Bearer';
    throw new V1Error(401, NO_VALID_KEY, { headers: { 'WWW-Authenticate': challenge } });
  }
  ctx.state.caller = caller;
  observer.onCaller?.(ctx.req, caller);
  const cause = observer.causes.causeOf(caller);
  cause.v2Calls = ctx.state.v2Calls as string[];
  try {
    await serve(ctx, caller);
  } finally {
    cause.v2Calls = undefined;
  }
}

/** Makes a browser ask its user for a key (as the password) and send it from then on. */
const BASIC_OR_BEARER = 'Basic realm="Holdover", charset="UTF-8", Bearer';

function opensPage(ctx: Koa.Context): boolean {
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
  return isRead && (ctx.get('Sec-Fetch-Mode') || 'navigate') === 'navigate' && wantsHtml(ctx);
}

function wantsHtml(ctx: Koa.Context): boolean {
  return ctx.get('Accept').includes('text/html');
}
