import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { STORAGE_FULL, isStorageFull } from '../lib/storage-errors.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller } from '../protocol/job-api.ts';
import { MAX_MODEL_CHARS, MAX_PROVIDER_CHARS, MODEL_PATHS } from '../protocol/router.ts';
import { createCatalog, modelEntry } from './catalog.ts';
import { replyDocument } from './schema-document.ts';
import { createModelInvoker } from './invoker.ts';
import { type ModelRequest, type ModelCaller, authenticate } from './authentication.ts';
import { readKeys } from './keys.ts';
import type { BodyReader } from '../http/json-body.ts';
import type { PublicAddress, PublicAddresses } from '../http/public-address.ts';
import type { ModelLimits } from './limits.ts';
import type { ModelDef } from './model-def.ts';
import { RateLimiter } from '../lib/rate-limiter.ts';
import { createReplays } from './replays.ts';
import {
  type RouterReply,
  type ReplyError,
  Unavailable,
  replyError,
  replyJson,
  writeReply,
} from './reply.ts';

/** The services that the router needs. */
export type ModelRouterOptions = {
  readonly models: readonly ModelDef[];
  readonly records: {
    readonly ledger: Ledger;
    /** True when several servers may have the ledger. */
    readonly isShared: boolean;
  };
  readonly log: Logger;
  readonly now: () => number;
  readonly access: {
    /** Returns the user of a key; `undefined` when this server does not know the key. */
    readonly callerOf: (key: string) => Caller | undefined;
    /** The path of the keys file. Without one, every credential may call. */
    readonly keysFile?: string | undefined;
  };
  readonly limits: ModelLimits;
  readonly requests: {
    readonly bodies: BodyReader;
    /** The addresses at which callers reach the server. */
    readonly addresses: PublicAddresses;
  };
};

/** The model router. */
export interface ModelRouter {
  /** Serves the model routes. Other paths continue to the next middleware. */
  readonly middleware: (ctx: Koa.Context, next: Koa.Next) => Promise<unknown>;
  close(): Promise<void>;
}

const MAX_ID_CHARS = MAX_PROVIDER_CHARS + 1 + MAX_MODEL_CHARS;

/** Creates the synchronous model router, over the models that run here. */
export function createModelRouter(options: ModelRouterOptions): ModelRouter {
  const { models, log, now, limits } = options;
  const { ledger, isShared } = options.records;
  const { callerOf, keysFile } = options.access;
  const { bodies, addresses } = options.requests;
  const catalog = createCatalog(models);
  const keys = keysFile === undefined ? undefined : readKeys(keysFile);
  const rates = new RateLimiter(now);
  const replays = createReplays({ store: ledger.replays, now, limits, isShared });
  const invoke = createModelInvoker({ ...options, bodies, modelCalls: ledger.modelCalls, replays });

  const findModel = (id: string, { mayUse }: ModelCaller): ModelDef | ReplyError => {
    const def = catalog.find(id);
    if (def === undefined) return catalog.notFound(id, mayUse);
    return mayUse(id) ? def : replyError('forbidden', 'Your key does not cover this model.');
  };
  const serveModel = async (
    request: ModelRequest,
    id: string,
    subresource: string,
  ): Promise<RouterReply> => {
    const { ctx, modelCaller } = request;
    const def = findModel(id, modelCaller);
    if ('bucket' in def) {
      const isCall = ctx.method === 'POST' && subresource === '';
      return isCall
        ? await invoke.refuse({ ...request, model: id.slice(0, MAX_ID_CHARS) }, def)
        : def;
    }
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (subresource === 'openapi.json') {
      return isRead ? replyDocument(def, ctx.req) : notAllowed('GET, HEAD');
    }
    if (ctx.method === 'POST') return await invoke.call({ ...request, def });
    return isRead ? showModel(def, ctx.path, addresses.of(ctx.req)) : notAllowed('GET, HEAD, POST');
  };
  const serve = async (ctx: Koa.Context, requestId: string): Promise<RouterReply> => {
    const modelCaller = authenticate(ctx.req, { callerOf, keys, limits });
    if ('bucket' in modelCaller) return modelCaller;
    ctx.state.modelWorkspace = modelCaller.workspace;
    const waitSeconds = rates.take(modelCaller.caller.user, modelCaller.requestsPerMinute);
    if (waitSeconds !== undefined) return tooMany(modelCaller, waitSeconds);
    // The path is not decoded, since no id needs encoding.
    const [, ...path] = ctx.path.replace(MODEL_PATHS, '').split('/');
    if (path.length === 0) {
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return notAllowed('GET, HEAD');
      return catalog.page(new URLSearchParams(ctx.querystring), modelCaller.mayUse);
    }
    const subresource = path.length === 3 && path[2] === 'openapi.json' ? path[2] : '';
    const id = path.slice(0, subresource ? 2 : undefined).join('/');
    return await serveModel({ ctx, modelCaller, requestId }, id, subresource);
  };
  const sweep = async (): Promise<void> => {
    await Promise.all([replays.sweep(), ledger.modelCalls.expire(now() - limits.auditMs)]);
  };
  const sweeping = setInterval(() => {
    sweep().catch((error: unknown) =>
      log.error({ event: 'models.sweep_failed', err: error }, 'could not remove old model calls'),
    );
  }, limits.sweepIntervalMs).unref();

  const answer = async (ctx: Koa.Context): Promise<void> => {
    // Always generated here, since it names the audit record.
    const requestId = randomUUID();
    const startedAtMs = now();
    const reply = await serve(ctx, requestId).catch((error: unknown) =>
      failureReply(log, requestId, error),
    );
    log.info(
      {
        event: 'models.call_answered',
        requestId,
        method: ctx.method,
        path: ctx.path.slice(0, 256),
        workspace: ctx.state.modelWorkspace as string | undefined,
        status: reply.status,
        errorType: reply.bucket,
        ms: now() - startedAtMs,
      },
      'model call answered',
    );
    writeReply(ctx, requestId, reply);
  };

  return {
    middleware: (ctx, next) => (MODEL_PATHS.test(ctx.path) ? answer(ctx) : next()),
    async close() {
      clearInterval(sweeping);
      await invoke.close();
    },
  };
}

/**
 * Shows a model. The address of its schema must be `https`, so it is left out on a plain
 * connection. The contract says: "Absent when no schema has been written for the model."
 */
function showModel(def: ModelDef, path: string, address: PublicAddress | undefined): RouterReply {
  const url = `${address?.base}${path}/openapi.json`;
  const isShown = def.input !== undefined && url.startsWith('https:');
  return replyJson({ ...modelEntry(def), ...(isShown && { input_schema_url: url }) });
}

function tooMany({ requestsPerMinute }: ModelCaller, retryAfterSeconds: number): RouterReply {
  const detail = `The allowance of ${requestsPerMinute} requests in a rolling window of 60 seconds is spent.`;
  return replyError('rate_limited', detail, {
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}

function notAllowed(methods: string): RouterReply {
  const more = { status: 405, headers: { Allow: methods } };
  return replyError('invalid_input', `Only ${methods} is possible here.`, more);
}

function failureReply(log: Logger, requestId: string, error: unknown): RouterReply {
  log.error({ event: 'models.call_failed', err: error, requestId }, 'could not serve a model call');
  // The contract has no bucket for a full disk. This is the nearest one, with the status that every
  // route uses.
  if (isStorageFull(error)) return replyError('service_unavailable', STORAGE_FULL, { status: 507 });
  return error instanceof Unavailable
    ? replyError('service_unavailable', 'The router cannot serve this call now: try again later.')
    : replyError('internal_error', 'The router could not serve this call.');
}
