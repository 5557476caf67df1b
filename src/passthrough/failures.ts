import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { NO_VALID_KEY } from '../dialects/errors.ts';
import { exposeHeaders } from '../http/answer.ts';
import { type Bucket, routerHeaders } from '../protocol/router.ts';

/** Why a call is not passed on, or how it failed. */
export type ProxyFailure = Exclude<keyof typeof FAILURES, 'lost_read'>;

/** Writes a failure of this server in the error format of the API that was called. */
export type WriteFailure = (ctx: Koa.Context, failure: ProxyFailure) => void;

type Failure = {
  /** The text for both formats. It does not name the upstream. */
  readonly message: string;
  /** Status and code of the v2 contract. */
  readonly v2: readonly [status: number, code: string];
  /** Status and bucket of the router. */
  readonly router: readonly [status: number, bucket: Bucket];
};

/** The contract has one error for failures behind the server, whether or not the call was sent. */
const UPSTREAM_ERROR = [500, 'upstream_error'] as const;

const FAILURES = {
  unauthorized: {
    message: NO_VALID_KEY.message,
    v2: [401, 'unauthorized'],
    router: [401, 'unauthorized'],
  },
  foreign_key: {
    message:
      'All callers of this server share one account of the service behind it, and none of them may see ' +
      'what belongs to others: a call with a key of its own is not passed on.',
    v2: [403, 'forbidden'],
    router: [403, 'forbidden'],
  },
  bad_path: {
    message: 'A path with dot segments is not passed on.',
    v2: [400, 'invalid_request'],
    router: [400, 'invalid_input'],
  },
  bad_method: {
    message: 'This method is not passed on.',
    v2: [405, 'method_not_allowed'],
    router: [405, 'invalid_input'],
  },
  bad_coding: {
    message: 'The only transfer coding that is passed on is chunked.',
    v2: [501, 'not_implemented'],
    router: [501, 'invalid_input'],
  },
  unreachable: {
    message: 'The service behind this server cannot be reached. Nothing was sent.',
    v2: UPSTREAM_ERROR,
    router: [503, 'service_unavailable'],
  },
  lost: {
    message:
      'The connection to the service behind this server was lost. The call may have taken effect.',
    v2: UPSTREAM_ERROR,
    // A client that sends the call again may run the model twice.
    router: [500, 'internal_error'],
  },
  lost_read: {
    message: 'The connection to the service behind this server was lost. Please try again.',
    v2: UPSTREAM_ERROR,
    router: [503, 'service_unavailable'],
  },
} as const satisfies Readonly<Record<string, Failure>>;

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);
const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** A service that is being restarted is back after a few seconds. */
const RETRY_AFTER_SECONDS = '2';

/** Writes the error envelope of the v2 contract. */
export const writeV2Failure: WriteFailure = (ctx, failure) => {
  const { v2, message } = failureOf(ctx, failure);
  const [status, code] = v2;
  if (failure === 'unreachable') ctx.set('Retry-After', RETRY_AFTER_SECONDS);
  answer(ctx, { status, failure, json: { error: { code, message, details: null } } });
};

/** Writes the router's two members, and both names of its two headers. */
export const writeRouterFailure: WriteFailure = (ctx, failure) => {
  const { router, message } = failureOf(ctx, failure);
  const [status, bucket] = router;
  const headers = routerHeaders(randomUUID(), bucket);
  ctx.set(headers);
  exposeHeaders(ctx.res, () => Object.keys(headers));
  answer(ctx, { status, failure, json: { detail: message, error_type: bucket } });
};

/** Returns the row of a failure. A call that only reads has no effect. */
function failureOf({ method }: Koa.Context, failure: ProxyFailure): Failure {
  return FAILURES[failure === 'lost' && SAFE_METHODS.has(method) ? 'lost_read' : failure];
}

function answer(
  ctx: Koa.Context,
  answered: { readonly status: number; readonly failure: ProxyFailure; readonly json: object },
): void {
  ctx.status = answered.status;
  ctx.set('Content-Type', 'application/json');
  if (answered.failure === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer');
  if (answered.failure === 'bad_method') ctx.set('Allow', ALLOWED_METHODS);
  ctx.body = JSON.stringify(answered.json);
}
