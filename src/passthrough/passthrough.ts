import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Logger } from '../telemetry.ts';
import type { Caller } from '../wire/jobs.ts';
import { aliases } from './aliases.ts';
import type { Order } from './call.ts';
import { isOddlyCoded, requestHeaders } from './headers.ts';
import { type Failure, type Say, sayInRouter, sayInV2 } from './language.ts';
import { type Overheard, createEars } from './overhear.ts';
import { type RelayLimits, createRelay } from './relay.ts';
import {
  type TargetOf,
  climbs,
  mountOf,
  readTarget,
  routerTargetOf,
  v2TargetOf,
  withoutKey,
} from './target.ts';

/** What passing through needs of the house. */
export type PassThroughDeps = {
  /** Of the upstream, which may have a mount prefix. */
  readonly baseUrl: string;
  /** The one key for all callers; `undefined`: each caller's own goes along. */
  readonly key: string | undefined;
  /** Where the upstream's model router is, below its base. */
  readonly routerPrefix: string;
  /** Who calls; `undefined` is a 401. */
  readonly authenticate: (request: IncomingMessage) => Promise<Caller | undefined>;
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
  /** Calls on their way are cut off. */
  close(): void;
};

/** What differs between the APIs that are passed through. */
type Dialect = {
  readonly targetOf: TargetOf;
  readonly say: Say;
  readonly isV2?: true;
  readonly beside?: NonNullable<Order['beside']>;
};

export function createPassThrough(deps: PassThroughDeps): PassThrough {
  const { authenticate, log } = deps;
  const { origin, host } = new URL(deps.baseUrl);
  const relay = createRelay(origin, deps.limits);
  const mount = mountOf(deps.baseUrl);
  const earFor = deps.overhear && createEars(deps.overhear);

  async function pass(
    ctx: Koa.Context,
    target: string,
    dialect: Dialect,
  ): Promise<Failure | undefined> {
    const refused = refusalOf(ctx);
    if (refused) return refused;
    const caller = await authenticate(ctx.req);
    if (caller === undefined) return 'unauthorized';
    ctx.state.caller = caller;
    if (deps.key !== undefined && caller.credential !== undefined) return 'foreign_key';
    const key = deps.key ?? caller.credential;
    const { beside } = dialect;
    const ear = dialect.isV2 ? earFor?.(ctx, target, caller) : undefined;
    const outcome = await relay.send(ctx, {
      path: target,
      headers: requestHeaders(ctx.req, { host, key }),
      ...(beside && { beside }),
      ...(ear && { ear }),
    });
    return outcome === 'answered' ? undefined : outcome;
  }

  const serve =
    (dialect: Dialect): Koa.Middleware =>
    (ctx, next) => {
      const { path, query } = readTarget(ctx.req.url ?? '');
      const target = dialect.targetOf(path);
      return target === undefined ? next() : answer(ctx, target + withoutKey(query), dialect);
    };

  async function answer(ctx: Koa.Context, target: string, dialect: Dialect): Promise<void> {
    const failure = await pass(ctx, target, dialect);
    if (failure === undefined) return;
    if (failure === 'unreachable' || failure === 'lost') {
      const id = ctx.state.requestId as string;
      log.warn({ id, failure }, 'a call could not be passed through');
    }
    dialect.say(ctx, failure);
  }

  return {
    v2: serve({ targetOf: v2TargetOf(mount), say: sayInV2, isV2: true }),
    router: serve({
      targetOf: routerTargetOf(mount, deps.routerPrefix),
      say: sayInRouter,
      beside: aliases,
    }),
    close: () => relay.close(),
  };
}

/** `TRACE` would show the key that goes along. */
function refusalOf({ req }: Koa.Context): Failure | undefined {
  if (climbs(readTarget(req.url ?? '').path)) return 'bad_path';
  if (req.method === 'TRACE') return 'bad_method';
  return isOddlyCoded(req) ? 'bad_coding' : undefined;
}
