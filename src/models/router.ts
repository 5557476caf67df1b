import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { STORAGE_FULL, isStorageFull } from '../lib/storage-full.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import type { Caller } from '../wire/jobs.ts';
import { MAX_MODEL_CHARS, MAX_PROVIDER_CHARS, MODEL_PATHS } from '../wire/router.ts';
import { createCatalog, entryOf } from './catalog.ts';
import { createCursors } from './cursor.ts';
import { replyDocument, writeDocument } from './document.ts';
import { type Visit, createInvoke } from './invoke.ts';
import { readKeys } from './keys.ts';
import type { BodyReader } from '../http/json-body.ts';
import type { PublicAddress, PublicAddresses } from '../http/public-address.ts';
import type { ModelLimits } from './limits.ts';
import { type ModelDef, modelId } from './model.ts';
import { createRateLimiter } from './rate.ts';
import { createReplays } from './replay.ts';
import {
  type Reply,
  type ReplyError,
  Unavailable,
  replyError,
  replyJson,
  writeReply,
} from './reply.ts';
import { type Visitor, createRecognise } from './visitor.ts';

/** What the router needs of the house. */
export type ModelRouterDeps = {
  readonly models: readonly ModelDef[];
  readonly ledger: Pick<Ledger, 'replays' | 'modelCalls'>;
  readonly log: Logger;
  readonly now: () => number;
  /** Signs page cursors. */
  readonly secret: Buffer;
  /** The user behind a key, `undefined` when the house lets only others in. */
  readonly callerOf: (key: string) => Caller | undefined;
  /** Who may call; left out, everybody with a credential. */
  readonly keysFile?: string | undefined;
  readonly limits: ModelLimits;
  readonly bodies: BodyReader;
  /** Where callers reach the server. */
  readonly addresses: PublicAddresses;
};

/** The router as the house uses it. */
export type ModelRouter = {
  /** Serves the model routes; other paths go on to the next middleware. */
  readonly middleware: Koa.Middleware;
  close(): Promise<void>;
};

const MAX_ID_CHARS = MAX_PROVIDER_CHARS + 1 + MAX_MODEL_CHARS;

/** The synchronous model router, over the models that run here. */
export function createModelRouter(deps: ModelRouterDeps): ModelRouter {
  const { models, log, now, limits, ledger } = deps;
  const catalog = createCatalog(models, createCursors(deps.secret));
  const documents = new Map(models.map((def) => [modelId(def), writeDocument(def)]));
  const keys = deps.keysFile === undefined ? undefined : readKeys(deps.keysFile);
  const recognise = createRecognise({ callerOf: deps.callerOf, keys, limits });
  const rates = createRateLimiter(now);
  const replays = createReplays({ store: ledger.replays, now, limits });
  const invoke = createInvoke({ ...deps, modelCalls: ledger.modelCalls, replays });

  const findModel = (id: string, { mayUse }: Visitor): ModelDef | ReplyError => {
    const def = catalog.find(id);
    if (def === undefined) return catalog.notFound(id, mayUse);
    return mayUse(id) ? def : replyError('forbidden', 'Your key does not cover this model.');
  };
  const serveModel = async (visit: Visit, id: string, leaf: string): Promise<Reply> => {
    const { ctx, visitor } = visit;
    const def = findModel(id, visitor);
    if ('bucket' in def) {
      const isCall = ctx.method === 'POST' && leaf === '';
      return isCall
        ? await invoke.refuse({ ...visit, model: id.slice(0, MAX_ID_CHARS) }, def)
        : def;
    }
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (leaf === 'openapi.json') {
      if (!isRead) return notAllowed('GET, HEAD');
      const document = documents.get(id);
      if (document === undefined) throw new Error(`${id} has no document`);
      return replyDocument(document, ctx.req.headers['if-none-match']);
    }
    if (ctx.method === 'POST') return await invoke.call({ ...visit, def });
    return isRead
      ? showModel(def, ctx.path, deps.addresses.of(ctx.req))
      : notAllowed('GET, HEAD, POST');
  };
  const serve = async (ctx: Koa.Context, requestId: string): Promise<Reply> => {
    const known = recognise(ctx.req);
    if (!known.ok) return known.refusal;
    const { visitor } = known;
    ctx.state.modelWorkspace = visitor.workspace;
    const allowance = rates.take(visitor.caller.user, visitor.requestsPerMinute);
    if (!allowance.ok) return tooMany(visitor, allowance.retryAfterSeconds);
    // Not decoded: no id has anything to encode.
    const [, ...path] = ctx.path.replace(MODEL_PATHS, '').split('/');
    if (path.length === 0) {
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return notAllowed('GET, HEAD');
      return catalog.page(new URLSearchParams(ctx.querystring), visitor.mayUse);
    }
    const leaf = path.length === 3 && path[2] === 'openapi.json' ? path[2] : '';
    const id = path.slice(0, leaf ? 2 : undefined).join('/');
    return await serveModel({ ctx, visitor, requestId }, id, leaf);
  };
  const sweep = async (): Promise<void> => {
    await Promise.all([replays.sweep(), ledger.modelCalls.expire(now() - limits.auditMs)]);
  };
  const sweeping = setInterval(() => {
    sweep().catch((error: unknown) =>
      log.error({ err: error }, 'old model calls were not removed'),
    );
  }, limits.sweepIntervalMs).unref();

  const answer = async (ctx: Koa.Context): Promise<void> => {
    // Made here, never taken over: it names the audit record.
    const requestId = randomUUID();
    const startedAtMs = now();
    const reply = await serve(ctx, requestId).catch((error: unknown) =>
      failure(log, requestId, error),
    );
    log.info(
      {
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

/** The address of the schema must be `https`; on a plain connection it is left out. */
function showModel(def: ModelDef, path: string, address: PublicAddress | undefined): Reply {
  const url = `${address?.base}${path}/openapi.json`;
  const isSecure = url.startsWith('https:');
  return replyJson({ ...entryOf(def), ...(isSecure && { input_schema_url: url }) });
}

function tooMany({ requestsPerMinute }: Visitor, retryAfterSeconds: number): Reply {
  const detail = `The allowance of ${requestsPerMinute} requests in a rolling window of 60 seconds is spent.`;
  return replyError('rate_limited', detail, {
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}

function notAllowed(methods: string): Reply {
  const more = { status: 405, headers: { Allow: methods } };
  return replyError('invalid_input', `Only ${methods} is possible here.`, more);
}

function failure(log: Logger, requestId: string, error: unknown): Reply {
  log.error({ err: error, requestId }, 'a model call could not be served');
  // The contract has no bucket for it: the nearest one, with the status every route has for it.
  if (isStorageFull(error)) return replyError('service_unavailable', STORAGE_FULL, { status: 507 });
  return error instanceof Unavailable
    ? replyError('service_unavailable', 'The router cannot serve this call now: try again later.')
    : replyError('internal_error', 'The router could not serve this call.');
}
