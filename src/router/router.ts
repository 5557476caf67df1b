import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { STORAGE_FULL, isStorageFull } from '../lib/storage-errors.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller } from '../protocol/job-api.ts';
import { MAX_MODEL_CHARS, MAX_PROVIDER_CHARS, MODEL_PATHS } from '../protocol/router.ts';
import { Catalog, modelEntry } from './catalog.ts';
import { replyDocument } from './schema-document.ts';
import { ModelInvoker } from './invoker.ts';
import { type ModelRequest, type ModelCaller, authenticate } from './authentication.ts';
import { type ModelKeys, readKeys } from './keys.ts';
import type { BodyReader } from '../http/json-body.ts';
import type { PublicAddress, PublicAddresses } from '../http/public-address.ts';
import type { ModelLimits } from './limits.ts';
import type { ModelDef } from './model-def.ts';
import { RateLimiter } from '../lib/rate-limiter.ts';
import { Replays } from './replays.ts';
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
  /** Signs page cursors. */
  readonly cursorSecret: Buffer;
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

/** The synchronous model router, over the models that run here. */
export class LocalModelRouter implements ModelRouter {
  readonly #options: ModelRouterOptions;
  readonly #catalog: Catalog;
  readonly #keys: ModelKeys | undefined;
  readonly #rates: RateLimiter;
  readonly #replays: Replays;
  readonly #invoker: ModelInvoker;
  readonly #sweeping: NodeJS.Timeout;

  readonly middleware: ModelRouter['middleware'] = (ctx, next) =>
    MODEL_PATHS.test(ctx.path) ? this.#answer(ctx) : next();

  constructor(options: ModelRouterOptions) {
    const { models, now, limits } = options;
    const { ledger, isShared } = options.records;
    const { keysFile } = options.access;
    this.#options = options;
    this.#catalog = new Catalog(models, options.cursorSecret);
    this.#keys = keysFile === undefined ? undefined : readKeys(keysFile);
    this.#rates = new RateLimiter(now);
    this.#replays = new Replays({ store: ledger.replays, now, limits, isShared });
    this.#invoker = new ModelInvoker({
      ...options,
      bodies: options.requests.bodies,
      modelCalls: ledger.modelCalls,
      replays: this.#replays,
    });
    this.#sweeping = setInterval(() => void this.#sweep(), limits.sweepIntervalMs).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeping);
    await this.#invoker.close();
  }

  async #answer(ctx: Koa.Context): Promise<void> {
    const { log, now } = this.#options;
    // Always generated here, since it names the audit record.
    const requestId = randomUUID();
    const startedAtMs = now();
    const reply = await this.#serve(ctx, requestId).catch((error: unknown) =>
      failureReply(log, requestId, error),
    );
    log.info(
      {
        event: 'models.call_answered',
        requestId,
        method: ctx.method,
        path: ctx.path.slice(0, 256),
        workspace: ctx.state.modelWorkspace,
        status: reply.status,
        errorType: reply.bucket,
        ms: now() - startedAtMs,
      },
      'model call answered',
    );
    writeReply(ctx, requestId, reply);
  }

  async #serve(ctx: Koa.Context, requestId: string): Promise<RouterReply> {
    const { limits, access } = this.#options;
    const { callerOf } = access;
    const modelCaller = authenticate(ctx.req, { callerOf, keys: this.#keys, limits });
    if ('bucket' in modelCaller) return modelCaller;
    ctx.state.modelWorkspace = modelCaller.workspace;
    const waitSeconds = this.#rates.take(modelCaller.caller.user, modelCaller.requestsPerMinute);
    if (waitSeconds !== undefined) return tooMany(modelCaller, waitSeconds);
    // The path is not decoded, since no id needs encoding.
    const [, ...path] = ctx.path.replace(MODEL_PATHS, '').split('/');
    if (path.length === 0) {
      if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return notAllowed('GET, HEAD');
      return this.#catalog.page(new URLSearchParams(ctx.querystring), modelCaller.mayUse);
    }
    const subresource = path.length === 3 && path[2] === 'openapi.json' ? path[2] : '';
    const id = path.slice(0, subresource ? 2 : undefined).join('/');
    return await this.#serveModel({ ctx, modelCaller, requestId }, id, subresource);
  }

  async #serveModel(request: ModelRequest, id: string, subresource: string): Promise<RouterReply> {
    const { ctx, modelCaller } = request;
    const def = this.#findModel(id, modelCaller);
    if ('bucket' in def) {
      const isCall = ctx.method === 'POST' && subresource === '';
      return isCall
        ? await this.#invoker.refuse({ ...request, model: id.slice(0, MAX_ID_CHARS) }, def)
        : def;
    }
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (subresource === 'openapi.json') {
      return isRead ? replyDocument(def, ctx.req) : notAllowed('GET, HEAD');
    }
    if (ctx.method === 'POST') return await this.#invoker.call({ ...request, def });
    const address = this.#options.requests.addresses.of(ctx.req);
    return isRead ? showModel(def, ctx.path, address) : notAllowed('GET, HEAD, POST');
  }

  #findModel(id: string, { mayUse }: ModelCaller): ModelDef | ReplyError {
    const def = this.#catalog.find(id);
    if (def === undefined) return this.#catalog.notFound(id, mayUse);
    return mayUse(id) ? def : replyError('forbidden', 'Your key does not cover this model.');
  }

  async #sweep(): Promise<void> {
    const { records, limits, log, now } = this.#options;
    try {
      await Promise.all([
        this.#replays.sweep(),
        records.ledger.modelCalls.expire(now() - limits.auditMs),
      ]);
    } catch (error) {
      log.error({ event: 'models.sweep_failed', err: error }, 'could not remove old model calls');
    }
  }
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
