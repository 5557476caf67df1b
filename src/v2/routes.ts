import Router from '@koa/router';
import type Koa from 'koa';
import { presentsKey } from '../auth/identity.ts';
import { storageProblem } from '../lib/storage-errors.ts';
import { type Caller, type Result, type V2Error, v2Error } from '../protocol/job-api.ts';
import { V2_PREFIX, isSignedContent, isV2Path } from '../protocol/v2-paths.ts';
import { createAssetHandlers } from './asset-handlers.ts';
import { createJobHandlers } from './job-handlers.ts';
import { type LinkRewriter, createLinkRewriter } from './link-rewriter.ts';
import {
  type Handler,
  type HandlerReply,
  type V2RouteOptions,
  replyWith,
  sendV2Error,
  sendReply,
} from './reply.ts';

/** Serves the v2 contract over any `JobApi`. Other paths go on to the next middleware. */
export function createV2Routes(options: V2RouteOptions): Koa.Middleware {
  const router = createRouter(options);
  const serve = router.routes() as unknown as Koa.Middleware;
  return (ctx, next) => (isV2Path(ctx.path) ? answer(ctx) : next());

  async function answer(ctx: Koa.Context): Promise<void> {
    try {
      await serve(ctx, async () => refuseUnrouted(router, ctx));
    } catch (error) {
      const facts = { event: 'v2.request_failed', err: error, path: ctx.path };
      options.log.error(facts, 'a v2 request failed');
      sendFailure(ctx, error);
    }
  }
}

type V2Route = { readonly method: string; readonly path: string; readonly handle: Handler };

/**
 * Returns every route below the prefix except health, which takes no parameters.
 * @internal
 */
export function v2Routes(options: V2RouteOptions): readonly V2Route[] {
  const handlers = { ...createJobHandlers(options), ...createAssetHandlers(options) };
  return Object.entries(handlers).map(([name, handle]) => {
    const [method = '', path = ''] = name.split(' ');
    return { method, path, handle };
  });
}

function createRouter(options: V2RouteOptions): Router {
  const router = new Router({ strict: true, sensitive: true });
  for (const { method, path, handle } of v2Routes(options)) {
    const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
    router.register(V2_PREFIX + path, methods, async (routed) => {
      const ctx = routed as unknown as Koa.Context;
      const { params } = routed;
      const linked = callerByLink(options, ctx, params);
      const caller = linked ?? identifyCaller(options, ctx);
      if (caller === undefined)
        return sendV2Error(ctx, isSignedContent(ctx.url) ? NO_SUCH_CONTENT : UNAUTHORIZED);
      // A signed link carries no credential: its reader need not be the owner of the account.
      const refusal = linked ? undefined : refuseRate(options, caller);
      if (refusal) return sendV2Error(ctx, refusal);
      render(ctx, await handle({ ctx, caller, params, links: linksFor(options, ctx, caller) }));
    });
  }
  // Health needs no authentication.
  router.register(`${V2_PREFIX}/health`, ['GET', 'HEAD'], async (routed) => {
    const reply = replyWith(await options.jobs.health(), (health) => health);
    render(routed as unknown as Koa.Context, reply);
  });
  return router;
}

function linksFor(
  { links: { addresses, signer } }: V2RouteOptions,
  ctx: Koa.Context,
  { user }: Caller,
): LinkRewriter {
  const sign = signer && ((assetId: string) => signer.sign({ user, assetId }));
  return createLinkRewriter({ address: addresses.of(ctx.req), sign });
}

/**
 * Returns the caller of a signed link. The link is its own authorization: its holder may read this
 * one asset in the name of its owner.
 */
function callerByLink(
  { links: { signer } }: V2RouteOptions,
  ctx: Koa.Context,
  { id = '' }: { readonly [name: string]: string },
): Caller | undefined {
  if (!isSignedContent(ctx.url)) return undefined;
  const user = signer?.userOf(id, new URLSearchParams(ctx.querystring));
  return user === undefined ? undefined : { user };
}

/** Identifies the caller. A link that is not valid gives no access, but a key beside it may. */
function identifyCaller({ callers }: V2RouteOptions, ctx: Koa.Context): Caller | undefined {
  if (isSignedContent(ctx.url) && !presentsKey(ctx.req)) return undefined;
  return callers.identify(ctx);
}

/**
 * Refuses calls above the caller's limit before their job is looked up: the answer does not reveal
 * if the job exists.
 */
function refuseRate({ callers: { rate } }: V2RouteOptions, { user }: Caller): V2Error | undefined {
  const retryAfterSeconds = rate?.limiter.take(user, rate.perMinute);
  if (!rate || retryAfterSeconds === undefined) return undefined;
  const message = `The allowance of ${rate.perMinute} requests in a rolling minute is spent.`;
  return v2Error(429, 'rate_limited', message, { retryAfterSeconds });
}

const NO_SUCH_CONTENT = v2Error(
  404,
  'not_found',
  'This link has expired or was altered, or its file is gone.',
);

const UNAUTHORIZED = v2Error(401, 'unauthorized', 'A valid key is needed: Authorization: Bearer.');

function render(ctx: Koa.Context, answer: Result<HandlerReply>): void {
  if (!answer.ok) sendV2Error(ctx, answer.error);
  else if (answer.value !== 'sent') sendReply(ctx, answer.value);
}

/** Refuses an unknown path, or a known path with another method. */
function refuseUnrouted(router: Router, ctx: Koa.Context): void {
  const layers = router.match(ctx.path, ctx.method).path;
  const allowed = new Set(layers.flatMap((layer) => layer.methods));
  if (allowed.size === 0) {
    return sendV2Error(ctx, v2Error(404, 'not_found', 'There is nothing here.'));
  }
  ctx.set('Allow', [...allowed].toSorted().join(', '));
  const message = `${ctx.method} is not possible here.`;
  sendV2Error(ctx, v2Error(405, 'method_not_allowed', message));
}

const FAILURE = {
  status: 500,
  code: 'upstream_error',
  message: 'The job service could not serve this call.',
} as const;

/**
 * Answers an internal error as the contract says. A response that has begun can only be cut off.
 */
function sendFailure(ctx: Koa.Context, error: unknown): void {
  if (ctx.res.headersSent) return void ctx.res.destroy();
  const { status, code, message, ...more } = storageProblem(error) ?? FAILURE;
  sendV2Error(ctx, v2Error(status, code, message, more));
}
