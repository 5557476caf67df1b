import { randomUUID } from 'node:crypto';
import type Koa from 'koa';
import { NO_VALID_KEY } from '../../dialects/errors.ts';
import { type Bucket, routerHeaders } from '../../protocol/router.ts';
import { exposeHeaders } from './answer-head.ts';

/** Why a call is not passed on, or how it failed. */
export type ProxyFailure = keyof typeof MESSAGES;

/** Writes a failure of this server in the error format of the API that was called. */
export type WriteFailure = (ctx: Koa.Context, failure: ProxyFailure) => void;

/** The texts for both formats. They do not name the upstream. */
const MESSAGES = {
  unauthorized: NO_VALID_KEY.message,
  foreign_key:
    'All callers of this server share one account of the service behind it, and nobody may see ' +
    'what belongs to others: a call with a key of its own is not passed on.',
  bad_path: 'A path with dot segments is not passed on.',
  bad_method: 'This method is not passed on.',
  bad_coding: 'The only transfer coding that is passed on is chunked.',
  unreachable: 'The service behind this server cannot be reached. Nothing was sent.',
  lost: 'The connection to the service behind this server was lost. The call may have taken effect.',
};

type Answer = { readonly code: string; readonly bucket: Bucket; readonly status: number };

/** `code` is that of the v2 contract; `bucket` is that of the router. */
const ANSWERS: Readonly<Record<ProxyFailure, Answer & { readonly routerStatus?: number }>> = {
  unauthorized: { code: 'unauthorized', bucket: 'unauthorized', status: 401 },
  foreign_key: { code: 'forbidden', bucket: 'forbidden', status: 403 },
  bad_path: { code: 'invalid_request', bucket: 'invalid_input', status: 400 },
  bad_method: { code: 'method_not_allowed', bucket: 'invalid_input', status: 405 },
  bad_coding: { code: 'not_implemented', bucket: 'invalid_input', status: 501 },
  unreachable: { code: 'upstream_unreachable', bucket: 'service_unavailable', status: 503 },
  lost: { code: 'upstream_error', bucket: 'internal_error', status: 502, routerStatus: 500 },
};

const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE';

/** Writes the error envelope of the v2 contract. */
export const writeV2Failure: WriteFailure = (ctx, failure) => {
  const { status, code } = ANSWERS[failure];
  const error = { code, message: MESSAGES[failure], details: null };
  answer(ctx, { status, failure, json: { error } });
};

/** Writes the router's two members, and both names of its two headers. */
export const writeRouterFailure: WriteFailure = (ctx, failure) => {
  const { bucket, status, routerStatus = status } = ANSWERS[failure];
  const headers = routerHeaders(randomUUID(), bucket);
  ctx.set(headers);
  exposeHeaders(ctx.res, Object.keys(headers));
  const json = { detail: MESSAGES[failure], error_type: bucket };
  answer(ctx, { status: routerStatus, failure, json });
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
