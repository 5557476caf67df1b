import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Logger } from '../telemetry.ts';
import type { Caller } from '../wire/jobs.ts';
import { readTarget } from '../wire/target.ts';
import { withoutLogin } from '../wire/url-credentials.ts';
import { aliases } from './aliases.ts';
import type { Exchange, Order } from './call.ts';
import { type RawHeaders, isOddlyCoded, requestHeaders } from './headers.ts';
import { type Failure, type Say, sayInRouter, sayInV2 } from './language.ts';
import { type Overheard, createEars } from './overhear.ts';
import { type RelayLimits, createRelay } from './relay.ts';
import {
  type TargetOf,
  aboutJob,
  climbs,
  jobIdIn,
  mountOf,
  routerTargetOf,
  v2TargetOf,
} from './target.ts';

/** What passing through needs of the house. */
export type PassThroughDeps = {
  /** Of the upstream, which may have a mount prefix. */
  readonly baseUrl: string;
  /** The one key for all callers; `undefined`: each caller's own goes along. */
  readonly key: string | undefined;
  /** Lets in whoever has it; it is not for the upstream. */
  readonly localToken?: string | undefined;
  /** Where the upstream's model router is, below its base. */
  readonly routerPrefix: string;
  /** Who calls; `undefined` is a 401. */
  readonly authenticate: (request: IncomingMessage) => Promise<Caller | undefined>;
  /** The service's id of a job that a user's client gave one of its own; `undefined`: none is known. */
  readonly jobIdOf?: (user: string, id: string) => Promise<string | undefined>;
  readonly log: Pick<Logger, 'warn'>;
  /** Told of the jobs that are made and ended this way. */
  readonly overhear?: (heard: Overheard) => void;
  readonly limits?: Partial<RelayLimits>;
};

/** The APIs of a remote upstream at our own address, as it serves them. */
export type PassThrough = {
  /** `/api/v2/*`; other paths go on to the next middleware. */
  readonly v2: Koa.Middleware;
  /** `/v1/models`, all below it, and `/proxy/*`; other paths go on to the next middleware. */
  readonly router: Koa.Middleware;
  /** The way of a small call that nothing else needs to look at; `undefined`: it is not one. */
  readonly express: (exchange: Exchange) => Express | undefined;
  /** Calls on their way are cut off. */
  close(): void;
};

/** A call that may go on at once. */
export type Express = {
  /** Which of the two APIs it is for. */
  readonly api: 'v2' | 'router';
  /**
   * Sends it on; its answer carries what it does not say itself. Tells whose call was answered.
   * Rejects, or resolves with `undefined`, when the middleware is to say what became of it: what was
   * sent is not sent again.
   */
  send(carries: RawHeaders): Promise<Caller | undefined>;
};

/** What differs between the APIs that are passed through. */
type Dialect = {
  readonly api: Express['api'];
  readonly targetOf: TargetOf;
  readonly say: Say;
  readonly beside?: NonNullable<Order['beside']>;
};

/** Where a call goes. */
type Way = { readonly target: string; readonly dialect: Dialect };

type Passed = { readonly caller?: Caller; readonly failure?: Failure };

export function createPassThrough(deps: PassThroughDeps): PassThrough {
  const { authenticate, log } = deps;
  const { origin, host } = new URL(deps.baseUrl);
  const relay = createRelay(origin, deps.limits);
  const mount = mountOf(deps.baseUrl);
  const earFor = deps.overhear && createEars(deps.overhear);

  /** Of calls that were sent ahead, to be said when they come by once more. */
  const failures = new WeakMap<IncomingMessage, Failure>();

  async function pass(exchange: Exchange, way: Way, carries?: RawHeaders): Promise<Passed> {
    const { req } = exchange;
    const refused = refusalOf(req);
    if (refused) return { failure: refused };
    const caller = await authenticate(req);
    if (caller === undefined) return { failure: 'unauthorized' };
    if (deps.key !== undefined && caller.credential !== undefined) {
      return { caller, failure: 'foreign_key' };
    }
    const key = deps.key ?? caller.credential;
    const { beside, api } = way.dialect;
    const path =
      api === 'v2' ? await atService(way.target, caller) : withoutKeysOf(caller, way.target);
    const ear = api === 'v2' ? earFor?.(exchange, path, caller) : undefined;
    const outcome = await relay.send(exchange, {
      path,
      headers: requestHeaders(req, { host, key }),
      carries,
      beside,
      ear,
    });
    return outcome === 'answered' ? { caller } : { caller, failure: outcome };
  }

  /** The service knows a job by its own id only. */
  async function atService(target: string, { user }: Caller): Promise<string> {
    const id = jobIdIn(target);
    if (id === undefined || deps.jobIdOf === undefined) return target;
    // Whoever asks by the service's id must not suffer from what only the others need.
    const jobId = await deps.jobIdOf(user, id).catch(() => undefined);
    return jobId === undefined || jobId === id ? target : aboutJob(target, jobId);
  }

  /** To a partner a `token` may be anything, a signature for instance. */
  function withoutKeysOf({ credential }: Caller, target: string): string {
    const { path, query } = readTarget(target);
    return path + withoutLogin(query, [credential, deps.key, deps.localToken]);
  }

  function targetIn({ targetOf, api }: Dialect, { url = '' }: IncomingMessage): string | undefined {
    const { path, query } = readTarget(url);
    const target = targetOf(path);
    return target === undefined ? undefined : target + (api === 'v2' ? withoutLogin(query) : query);
  }

  const serve =
    (dialect: Dialect): Koa.Middleware =>
    (ctx, next) => {
      const target = targetIn(dialect, ctx.req);
      return target === undefined ? next() : answer(ctx, { target, dialect });
    };

  async function answer(ctx: Koa.Context, way: Way): Promise<void> {
    const known = failures.get(ctx.req);
    const { caller, failure } = known ? { failure: known } : await pass(ctx, way);
    if (caller) ctx.state.caller = caller;
    if (failure === undefined) return;
    if (failure === 'unreachable' || failure === 'lost') {
      const id = ctx.state.requestId as string;
      const event = 'upstream.call_not_passed';
      log.warn({ event, id, failure }, 'a call could not be passed through');
    }
    way.dialect.say(ctx, failure);
  }

  const v2: Dialect = { api: 'v2', targetOf: v2TargetOf(mount), say: sayInV2 };
  const router: Dialect = {
    api: 'router',
    targetOf: routerTargetOf(mount, deps.routerPrefix),
    say: sayInRouter,
    beside: aliases,
  };
  return {
    v2: serve(v2),
    router: serve(router),
    express(exchange) {
      const { req } = exchange;
      for (const dialect of [v2, router]) {
        const target = targetIn(dialect, req);
        if (target !== undefined)
          return relay.isSmall(req) ? ahead({ target, dialect }) : undefined;
      }
      return undefined;

      function ahead(way: Way): Express {
        return {
          api: way.dialect.api,
          async send(carries) {
            const { caller, failure } = await pass(exchange, way, carries);
            if (failure === undefined) return caller;
            failures.set(req, failure);
            return undefined;
          },
        };
      }
    },
    close: () => relay.close(),
  };
}

/** `TRACE` would show the key that goes along; `OPTIONS` asks about this server. */
function refusalOf(req: IncomingMessage): Failure | undefined {
  if (climbs(readTarget(req.url ?? '').path)) return 'bad_path';
  if (req.method === 'TRACE' || req.method === 'OPTIONS') return 'bad_method';
  return isOddlyCoded(req) ? 'bad_coding' : undefined;
}
