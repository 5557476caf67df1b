import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { BUCKET_STATUS, type Bucket, routerHeaders } from '../../protocol/router.ts';
import { exposeHeaders } from './answer-head.ts';

/** Why a call is not passed on, or what became of it. */
export type ProxyFailure =
  | 'unauthorized'
  | 'foreign_key'
  | 'bad_path'
  | 'bad_method'
  | 'bad_coding'
  | 'unreachable'
  | 'lost';

/** Writes a failure of this server in the error format of the API that was called. */
export type WriteFailure = (ctx: Koa.Context, failure: ProxyFailure) => void;

/** The texts of both formats; they do not name the upstream. */
const MESSAGES: Readonly<Record<ProxyFailure, string>> = {
  unauthorized: 'A valid key is needed: X-API-Key, or Authorization: Bearer.',
  foreign_key:
    'All callers of this server share one account of the service behind it, and nobody may see ' +
    'what belongs to others: a call with a key of its own is not passed on.',
  bad_path: 'A path with dot segments is not passed on.',
  bad_method: 'This method is not passed on.',
  bad_coding: 'The only transfer coding that is passed on is chunked.',
  unreachable: 'The service behind this server cannot be reached. Nothing was sent.',
  lost: 'The connection to the service behind this server was lost. The call may have taken effect.',
};

const V2_FAILURES: Readonly<
  Record<ProxyFailure, { readonly status: number; readonly code: string }>
> = {
  unauthorized: { status: 401, code: 'unauthorized' },
  foreign_key: { status: 403, code: 'forbidden' },
  bad_path: { status: 400, code: 'invalid_request' },
  bad_method: { status: 405, code: 'method_not_allowed' },
  bad_coding: { status: 501, code: 'not_implemented' },
  unreachable: { status: 503, code: 'upstream_unreachable' },
  lost: { status: 502, code: 'upstream_error' },
};

const ROUTER_FAILURES: Readonly<
  Record<ProxyFailure, { readonly status?: number; readonly bucket: Bucket }>
> = {
  unauthorized: { bucket: 'unauthorized' },
  foreign_key: { bucket: 'forbidden' },
  bad_path: { bucket: 'invalid_input' },
  bad_method: { bucket: 'invalid_input', status: 405 },
  bad_coding: { bucket: 'invalid_input', status: 501 },
  unreachable: { bucket: 'service_unavailable' },
  lost: { bucket: 'internal_error' },
};

const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** The envelope of the v2 contract. */
export const writeV2Failure: WriteFailure = (ctx, failure) => {
  const { status, code } = V2_FAILURES[failure];
  answer(ctx, {
    status,
    failure,
    json: { error: { code, message: MESSAGES[failure], details: null } },
  });
};

/** The router's two fields, and both names of its two headers. */
export const writeRouterFailure: WriteFailure = (ctx, failure) => {
  const { bucket, status = BUCKET_STATUS[bucket] } = ROUTER_FAILURES[failure];
  const headers = routerHeaders(randomUUID(), bucket);
  ctx.set(headers);
  exposeHeaders(ctx.res, Object.keys(headers));
  answer(ctx, { status, failure, json: { detail: MESSAGES[failure], error_type: bucket } });
};

function answer(
  ctx: Koa.Context,
  answered: { readonly status: number; readonly failure: ProxyFailure; readonly json: object },
): void {
  ctx.status = answered.status;
  ctx.set('Content-Type', 'application/json');
  ctx.set('Cache-Control', 'no-store');
  if (answered.failure === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer');
  if (answered.failure === 'bad_method') ctx.set('Allow', ALLOWED_METHODS);
  ctx.body = JSON.stringify(answered.json);
}
