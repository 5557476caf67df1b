import type { IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import type Koa from 'koa';
import type { Logger } from '../observability/log.ts';
import type { Caller } from '../protocol/job-api.ts';
import { type RequestTarget, readTarget } from '../protocol/request-target.ts';
import { mountOf } from '../protocol/v2-paths.ts';
import { withoutLogin } from '../protocol/url-credentials.ts';
import { addAliases, hasUnsupportedCoding, requestHeaders } from './headers.ts';
import type { ProxyRequest, ProxyExchange } from './proxy-exchange.ts';
import { addRouterHeaders } from './router-headers.ts';
import {
  type ProxyFailure,
  type WriteFailure,
  writeRouterFailure,
  writeV2Failure,
} from './failures.ts';
import { type JobCall, JobCallObserver } from './job-call-observer.ts';
import type { ProxyOutcome } from './proxy-call.ts';
import { type Relay, type RelayLimits, createRelay } from './relay.ts';
import {
  type TargetOf,
  withJobId,
  hasDotSegments,
  jobOfTarget,
  modelTargetOf,
  partnerTargetOf,
  v2TargetOf,
} from './target.ts';

/** The services that passing through needs. */
export type PassThroughOptions = {
  /** The base URL of the upstream, which may have a path prefix. */
  readonly baseUrl: string;
  /** The one key for all callers. `undefined`: each caller's own key is sent. */
  readonly key: string | undefined;
  /** The token that gives callers access here. It is not sent upstream. */
  readonly localToken?: string | undefined;
  /** Returns the caller; `undefined` becomes a 401. */
  readonly authenticate: (request: IncomingMessage) => Promise<Caller | undefined>;
  /**
   * Returns the service's id of a job that the user's client named itself; `undefined`: it is not
   * known.
   */
  readonly jobIdOf?: (user: string, id: string) => Promise<string | undefined>;
  readonly log: Logger;
  /** Called for each job that is submitted, cancelled or fetched by a passed-through call. */
  readonly onJobCall?: (call: JobCall) => void;
  readonly limits?: Partial<RelayLimits>;
};

/** An API that is passed through, where it differs from the others. */
type PassedApi = {
  readonly api: 'v2' | 'router';
  /** The route in the metrics. */
  readonly label: string;
  readonly targetOf: TargetOf;
  readonly writeFailure: WriteFailure;
  readonly addHeaders?: NonNullable<ProxyRequest['addHeaders']>;
};

/** The target of a call, and its path at the upstream. */
type ProxyRoute = RequestTarget & { readonly upstreamPath: string; readonly passedApi: PassedApi };

type ProxyResult = { readonly caller?: Caller; readonly failure?: ProxyFailure };

/** The APIs of a remote upstream at the address of this server, as the upstream serves them. */
export class PassThrough {
  readonly #options: PassThroughOptions;
  readonly #relay: Relay;
  readonly #host: string;
  readonly #passedApis: readonly PassedApi[];
  readonly #jobCalls: JobCallObserver | undefined;

  constructor(options: PassThroughOptions) {
    const { origin, host } = new URL(options.baseUrl);
    this.#options = options;
    this.#relay = createRelay(origin, options.limits);
    this.#host = host;
    this.#passedApis = passedApisBelow(mountOf(options.baseUrl));
    this.#jobCalls = options.onJobCall && new JobCallObserver(options.onJobCall);
  }

  /**
   * Serves `/api/v2/*`, `/v1/models` and everything below it, and `/proxy/*`. Other paths continue
   * to the next middleware.
   */
  readonly serve: Koa.Middleware = (ctx, next) => {
    const { path, query } = readTarget(ctx.url);
    for (const passedApi of this.#passedApis) {
      const upstreamPath = passedApi.targetOf(path);
      if (upstreamPath === undefined) continue;
      ctx.state.answeredBy = passedApi.label;
      return this.#forwardOrRefuse(ctx, { path, query, upstreamPath, passedApi });
    }
    return next();
  };

  /** Cuts off the calls in progress. */
  close(): void {
    this.#relay.close();
  }

  async #forwardOrRefuse(ctx: Koa.Context, route: ProxyRoute): Promise<void> {
    const { caller, failure } = await this.#forward(ctx, route);
    if (caller) ctx.state.caller = caller;
    if (failure === undefined) {
      if (!ctx.headerSent) ctx.status = CLIENT_CLOSED_REQUEST;
      return;
    }
    if (failure === 'unreachable' || failure === 'lost') {
      const id = ctx.state.requestId;
      const event = 'upstream.call_not_passed';
      this.#options.log.warn({ event, id, failure }, 'could not pass a call through');
    }
    route.passedApi.writeFailure(ctx, failure);
  }

  /** Sends one call of a route upstream, or returns why it is refused. */
  async #forward(exchange: ProxyExchange, route: ProxyRoute): Promise<ProxyResult> {
    const { req } = exchange;
    const refused = refusalOf(req, route.path);
    if (refused) return { failure: refused };
    const caller = await this.#options.authenticate(req);
    if (caller === undefined) return { failure: 'unauthorized' };
    if (this.#options.key !== undefined && caller.credential !== undefined) {
      return { caller, failure: 'foreign_key' };
    }
    const key = this.#options.key ?? caller.credential;
    const { addHeaders, api } = route.passedApi;
    const path =
      api === 'v2'
        ? await this.#withServiceJobId(route.upstreamPath + withoutLogin(route.query), caller)
        : route.upstreamPath + this.#withoutCallerKeys(caller, route.query);
    const observer = api === 'v2' ? this.#jobCalls?.observerFor(exchange, path, caller) : undefined;
    const headers = requestHeaders(req, { host: this.#host, key });
    const request = { path, headers, addHeaders, observer };
    const isJobRead = api === 'v2' && req.method === 'GET' && jobOfTarget(path)?.operation === '';
    const outcome = await (isJobRead
      ? this.#readJob(exchange, request)
      : this.#relay.send(exchange, request));
    if (outcome === 'answered' || outcome === 'doubtful') return { caller };
    return { caller, failure: outcome };
  }

  /**
   * Reads a job. An answer that says `expired` is asked for once more: one service says so of a job
   * that it moves between two lists.
   */
  async #readJob(exchange: ProxyExchange, request: ProxyRequest): Promise<ProxyOutcome> {
    const first = await this.#relay.send(exchange, { ...request, isDoubtful: saysExpired });
    if (first !== 'doubtful') return first;
    await setTimeout(CONFIRM_AFTER_MS);
    return this.#relay.send(exchange, request);
  }

  /** Replaces a prompt's id in the target: the service knows a job only by its own id. */
  async #withServiceJobId(target: string, { user }: Caller): Promise<string> {
    const { jobIdOf } = this.#options;
    const id = jobOfTarget(target)?.jobId;
    if (id === undefined || jobIdOf === undefined) return target;
    // A caller that uses the service's id must not fail because of this lookup.
    const jobId = await jobIdOf(user, id).catch(() => undefined);
    return jobId === undefined || jobId === id ? target : withJobId(target, jobId);
  }

  /**
   * Removes the caller's keys. In a partner's call, a `token` may be something else, such as a
   * signature.
   */
  #withoutCallerKeys({ credential }: Caller, query: string): string {
    return withoutLogin(query, [credential, this.#options.key, this.#options.localToken]);
  }
}

const CONFIRM_AFTER_MS = 500;

function saysExpired(body: Buffer): boolean {
  try {
    const job = JSON.parse(body.toString()) as { readonly status?: unknown } | null;
    return job?.status === 'expired';
  } catch {
    return false;
  }
}

/** Returns the APIs of an upstream whose base URL has this path prefix. */
function passedApisBelow(mount: string): readonly PassedApi[] {
  const router = {
    api: 'router',
    label: '/v1/models/*',
    writeFailure: writeRouterFailure,
  } as const;
  return [
    { api: 'v2', label: '/api/v2/*', targetOf: v2TargetOf(mount), writeFailure: writeV2Failure },
    { ...router, targetOf: modelTargetOf(mount), addHeaders: addRouterHeaders },
    { ...router, targetOf: partnerTargetOf(mount), addHeaders: addAliases },
  ];
}

/**
 * The status in the log for a client that disconnected before its answer, as other servers use it.
 */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Refuses methods: `TRACE` would return the key that is added, and `OPTIONS` is about this server.
 */
function refusalOf(req: IncomingMessage, path: string): ProxyFailure | undefined {
  if (hasDotSegments(path)) return 'bad_path';
  if (req.method === 'TRACE' || req.method === 'OPTIONS') return 'bad_method';
  return hasUnsupportedCoding(req) ? 'bad_coding' : undefined;
}
