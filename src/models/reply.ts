import type Koa from 'koa';
import { type Json, stringifyJson } from '../protocol/json.ts';
import {
  BUCKET_STATUS,
  type Bucket,
  type ValidationDetail,
  routerHeaders,
} from '../protocol/router.ts';

/** An answer of the router before it is written; with a `bucket` it is an error. */
export type Reply = {
  readonly status: number;
  readonly headers?: { readonly [name: string]: string };
  readonly contentType?: string;
  readonly body?: Uint8Array | string;
  readonly bucket?: Bucket;
};

/** An answer that is an error. */
export type ReplyError = Reply & { readonly bucket: Bucket };

/** Something the router needs does not answer; it may again, without any change by the caller. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

const JSON_TYPE = 'application/json';

/** A JSON answer; what a caller may see is no business of shared caches. */
export function replyJson(value: Json, headers: Reply['headers'] = {}): Reply {
  return {
    status: 200,
    contentType: JSON_TYPE,
    body: stringifyJson(value),
    headers: { 'Cache-Control': 'no-store', ...headers },
  };
}

/** A refusal or failure; `status` differs from the bucket's own where the contract requires it. */
export function replyError(
  bucket: Bucket,
  detail: string,
  more: { readonly status?: number; readonly headers?: { readonly [name: string]: string } } = {},
): ReplyError {
  return {
    status: more.status ?? BUCKET_STATUS[bucket],
    contentType: JSON_TYPE,
    body: stringifyJson({ detail, error_type: bucket }),
    headers: { 'Cache-Control': 'no-store', ...more.headers },
    bucket,
  };
}

/** The 422: its bucket is in the header only. */
export function replyInvalid(detail: readonly ValidationDetail[]): ReplyError {
  return {
    status: 422,
    contentType: JSON_TYPE,
    body: stringifyJson({ detail: detail as Json }),
    headers: { 'Cache-Control': 'no-store' },
    bucket: 'invalid_input',
  };
}

/** Writes an answer, under both names of each header. */
export function writeReply(ctx: Koa.Context, requestId: string, reply: Reply): void {
  const { status, body, bucket } = reply;
  const headers = { ...reply.headers, ...routerHeaders(requestId, bucket) };
  ctx.status = status;
  if (body === undefined) ctx.body = null;
  else
    ctx.body =
      typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // Koa turns a 304 with a `null` body into a 204 unless the status is set again.
  ctx.status = status;
  if (reply.contentType === undefined) ctx.remove('Content-Type');
  else ctx.set('Content-Type', reply.contentType);
  ctx.set(headers);
  exposeHeaders(ctx, Object.keys(headers));
}

/** In CORS mode a page may read only what is listed. */
function exposeHeaders(ctx: Koa.Context, names: readonly string[]): void {
  const listed = ctx.response.get('Access-Control-Expose-Headers');
  if (listed) ctx.set('Access-Control-Expose-Headers', [listed, ...names].join(', '));
}
