import Router from '@koa/router';
import type Koa from 'koa';
import { type BodyText, readBodyText } from '../body.ts';
import { type Json, parseJson, stringifyJson } from '../wire/json.ts';
import { type Caller, type JobApi, type Result, type V2Error, refuse } from '../wire/jobs.ts';
import type { Asset, Job } from '../wire/v2.ts';
import { assetRoutes } from './http-assets.ts';
import { readListQuery, readSubmit } from './http-requests.ts';
import { createStreams } from './sse.ts';

/** What the v2 routes need of the house; any `JobApi` will do. */
export type V2Deps = {
  readonly jobs: JobApi;
  /** Who asks; `undefined` is answered 401. */
  readonly identify: (ctx: Koa.Context) => Caller | undefined;
  readonly spoolDir: string;
  readonly maxUploadBytes: number;
  /** Event streams of one caller at a time. */
  readonly streamCap?: number;
  readonly heartbeatMs?: number;
};

const PREFIX = '/api/v2';
const STREAM_CAP = 64;
const HEARTBEAT_MS = 15_000;

/** Only these words below the prefix are v2's; the others are v1's own `/v2/…` routes. */
export function isV2Path(path: string): boolean {
  return /^\/api\/v2\/(jobs|assets|health)(\/|$)/.test(path);
}

/** The v2 contract over HTTP. */
export function createV2Routes(deps: V2Deps): Koa.Middleware {
  const router = new Router<Koa.DefaultState, Koa.DefaultContext>({ prefix: PREFIX, strict: true, sensitive: true });
  const streams = createStreams({
    cap: deps.streamCap ?? STREAM_CAP,
    heartbeatMs: deps.heartbeatMs ?? HEARTBEAT_MS,
  });
  const { jobs } = deps;

  router.get('/health', async (ctx) => send(ctx, await jobs.health()));
  router.use(async (ctx, next) => {
    const caller = deps.identify(ctx as unknown as Koa.Context);
    if (caller === undefined) {
      ctx.set('WWW-Authenticate', 'Bearer');
      return send(ctx, refuse(401, 'unauthorized', 'Missing or invalid credentials.'));
    }
    ctx.state['caller'] = caller;
    await next();
  });
  router.post('/jobs', async (ctx) => {
    const body = await readBody(ctx, deps.maxUploadBytes);
    const request = body.ok ? readSubmit(body.value, ctx.get('Idempotency-Key')) : body;
    sendJob(ctx, request.ok ? await jobs.submit(callerOf(ctx), request.value) : request, 201);
  });
  router.get('/jobs', async (ctx) => {
    const query = readListQuery(new URLSearchParams(ctx.querystring));
    const listed = query.ok ? await jobs.list(callerOf(ctx), query.value) : query;
    send(ctx, listed.ok ? { ok: true, value: { ...listed.value, jobs: listed.value.jobs.map((job) => linked(ctx, job)) } } : listed);
  });
  router.get('/jobs/:id', async (ctx) => sendJob(ctx, await jobs.get(callerOf(ctx), ctx.params['id'] ?? '')));
  router.get('/jobs/:id/workflow', async (ctx) => send(ctx, await jobs.workflow(callerOf(ctx), ctx.params['id'] ?? '')));
  router.get('/jobs/:id/logs', async (ctx) => {
    // Nothing a graph runs here writes to standard output.
    const job = await jobs.get(callerOf(ctx), ctx.params['id'] ?? '');
    if (!job.ok) return send(ctx, job);
    ctx.status = 204;
  });
  router.post('/jobs/:id/cancel', async (ctx) => sendJob(ctx, await jobs.cancel(callerOf(ctx), ctx.params['id'] ?? '')));
  router.get('/jobs/:id/events', async (ctx) => {
    const opened = await streams.open(ctx as unknown as Koa.Context, callerOf(ctx), (signal) =>
      jobs.events(callerOf(ctx), ctx.params['id'] ?? '', signal),
    );
    if (!opened.ok) send(ctx, opened);
  });
  assetRoutes(router, deps);

  return async (ctx, next) => {
    if (!isV2Path(ctx.path)) return next();
    // Koa answers 404 by itself where a handler was silent; ours all speak.
    await router.routes()(ctx as never, async () => noRoute(ctx, router));
  };
}

type Ctx = Pick<Koa.Context, 'status' | 'body' | 'set' | 'state' | 'protocol' | 'host' | 'req' | 'get' | 'method'>;

export function callerOf(ctx: Ctx): Caller {
  return ctx.state['caller'] as Caller;
}

/** Answers with a value, or with v2's error envelope. */
export function send(ctx: Ctx, result: Result<unknown>, status = 200): void {
  if (!result.ok) return sendError(ctx, result.error);
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = stringifyJson(result.value as Json);
}

export function sendError(ctx: Ctx, { status, code, message, details, retryAfterSeconds }: V2Error): void {
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  if (retryAfterSeconds !== undefined) ctx.set('Retry-After', String(retryAfterSeconds));
  if (status === 413) ctx.set('Connection', 'close');
  ctx.body = stringifyJson({ error: { code, message, details } });
}

/** An asset's `url` is absolute in the contract; it is built from the address the caller used. */
export function linkedAsset<T extends Pick<Asset, 'url'>>(ctx: Ctx, asset: T): T {
  return { ...asset, url: asset.url.startsWith('/') ? `${ctx.protocol}://${ctx.host}${asset.url}` : asset.url };
}

/** Reads a JSON body whatever its content type says. */
export async function readBody(ctx: Ctx, maxBytes: number): Promise<Result<Json>> {
  const read = await readBodyText(ctx.req, { maxBytes });
  if (!read.ok) return refuse(read.status, BODY_CODES[read.status], read.message);
  try {
    return { ok: true, value: parseJson(read.value) };
  } catch {
    return refuse(400, 'invalid_request', 'The body is not JSON.');
  }
}

const BODY_CODES = {
  400: 'invalid_request',
  413: 'payload_too_large',
  415: 'invalid_request',
} as const satisfies Record<Extract<BodyText, { ok: false }>['status'], string>;

function sendJob(ctx: Ctx, result: Result<Job>, status = 200): void {
  send(ctx, result.ok ? { ok: true, value: linked(ctx, result.value) } : result, status);
}

function linked(ctx: Ctx, job: Job): Job {
  return { ...job, outputs: job.outputs.map((output) => linkedAsset(ctx, output)) };
}

function noRoute(ctx: Koa.Context, router: Pick<Router, 'match'>): void {
  const allowed = new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods));
  if (allowed.size === 0) return send(ctx, refuse(404, 'not_found', 'There is nothing at this path.'));
  ctx.set('Allow', [...allowed].join(', '));
  send(ctx, refuse(405, 'method_not_allowed', `${ctx.method} is not possible here.`));
}
