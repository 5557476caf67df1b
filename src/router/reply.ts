import type Koa from 'koa';
import { exposeHeaders } from '../http/answer.ts';
import { type Json, stringifyJson } from '../protocol/json.ts';
import {
  BUCKET_STATUS,
  type Bucket,
  type ValidationDetail,
  routerHeaders,
} from '../protocol/router.ts';

/** An answer of the router before it is written. With a `bucket` it is an error. */
export type RouterReply = {
  readonly status: number;
  readonly headers?: { readonly [name: string]: string };
  readonly contentType?: string;
  readonly body?: Uint8Array | string;
  readonly bucket?: Bucket;
};

/** An answer that is an error. */
export type ReplyError = RouterReply & { readonly bucket: Bucket };

/**
 * Thrown when a service that the router needs does not answer. It may answer later, without a
 * change by the caller.
 */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
}

const JSON_TYPE = 'application/json';

type Headers = NonNullable<RouterReply['headers']>;

/** Returns a JSON answer. */
export function replyJson(value: Json, headers: Headers = {}): RouterReply {
  return {
    status: 200,
    contentType: JSON_TYPE,
    body: stringifyJson(value),
    headers,
  };
}

/**
 * Returns a refusal or failure. `status` differs from the bucket's own where the contract requires
 * it.
 */
export function replyError(
  bucket: Bucket,
  detail: string,
  { status = BUCKET_STATUS[bucket], headers }: { status?: number; headers?: Headers } = {},
): ReplyError {
  return { ...replyJson({ detail, error_type: bucket }, headers), status, bucket };
}

/** Returns the 422, whose bucket is in the header only. */
export function replyInvalid(detail: readonly ValidationDetail[]): ReplyError {
  return { ...replyJson({ detail: detail as Json }), status: 422, bucket: 'invalid_input' };
}

/** Writes an answer, with both names of each header. */
export function writeReply(ctx: Koa.Context, requestId: string, reply: RouterReply): void {
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
  exposeHeaders(ctx.res, () => Object.keys(headers));
}
