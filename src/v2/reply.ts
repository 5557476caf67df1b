import type { Clock } from '../lib/clock.ts';
import type { RateLimiter } from '../lib/rate-limiter.ts';
import type { Readable } from 'node:stream';
import type Koa from 'koa';
import type { BodyReader } from '../http/json-body.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import type { Logger } from '../observability/log.ts';
import {
  type Caller,
  type JobApi,
  type Result,
  type V2Error,
  ok,
  refuse,
} from '../protocol/job-api.ts';
import { type Json, isJsonObject, stringifyJson } from '../protocol/json.ts';
import { sendEmpty } from '../dialects/errors.ts';
import type { FormLimits } from '../http/received-form.ts';
import type { LinkRewriter, ContentSigner } from './link-rewriter.ts';
import type { EngineSubmission } from '../prompts/external-job.ts';
import type { MarkJobFetched } from '../prompts/mark-fetched.ts';

/** The services and limits of the v2 routes. */
export type V2RouteOptions = {
  readonly uploads: FormLimits;
  readonly jobs: JobApi;
  readonly callers: {
    /** Identifies the caller. `undefined` leads to a 401. */
    readonly identify: (ctx: Koa.Context) => Caller | undefined;
    /** The limit of one caller's requests in a rolling minute. Absent: no limit. */
    readonly rate?: { readonly limiter: RateLimiter; readonly perMinute: number };
  };
  readonly bodies: BodyReader;
  readonly streams?: StreamLimits;
  readonly links: {
    /** The public addresses of this server. */
    readonly addresses: PublicAddresses;
    /** Signs links to bytes, which then work without a key. Absent: a link needs a key. */
    readonly signer?: ContentSigner;
  };
  readonly log: Logger;
  readonly observer?: {
    /** Called for every new job before its submitter is answered; never rejects. */
    readonly onSubmit: (submitted: EngineSubmission) => Promise<void>;
    /** Called when a caller is answered with a finished job. */
    readonly onFetch: MarkJobFetched;
  };
};

/** Limits of event streams. */
type StreamLimits = {
  /** The maximum number of one caller. */
  readonly cap?: number;
  readonly keepAliveMs?: number;
  readonly clock?: Clock;
};

/** One authenticated v2 call. */
export type V2Request = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  readonly params: { readonly [name: string]: string };
  readonly links: LinkRewriter;
};

/** The answer of a handler. `sent`: the handler has written the response itself. */
export type HandlerReply =
  | {
      readonly status: number;
      readonly headers?: { readonly [name: string]: string };
      readonly json?: Json;
      readonly stream?: Readable;
    }
  | 'sent';

export type Handler = (request: V2Request) => Promise<Result<HandlerReply>>;

/** Handlers by the names of their routes: method and path below the prefix. */
export type Handlers = {
  readonly [route in `${'GET' | 'HEAD' | 'POST' | 'DELETE'} /${string}`]: Handler;
};

/** Refuses a request that violates the contract. */
export function badRequest<T>(message: string): Result<T> {
  return refuse(400, 'invalid_request', message);
}

/** Refuses a field whose value violates the contract. */
export function badField<T>(message: string): Result<T> {
  return refuse(422, 'invalid_request', message);
}

/** Answers with the value as JSON, as the client sees it. */
export function replyWith<T>(
  result: Result<T>,
  show: (value: T) => unknown,
  status = 200,
): Result<HandlerReply> {
  return result.ok ? ok({ status, json: show(result.value) as Json }) : result;
}

/** Writes a handler's answer. */
export function sendReply(ctx: Koa.Context, reply: Exclude<HandlerReply, 'sent'>): void {
  ctx.status = reply.status;
  if (reply.json !== undefined) {
    ctx.set('Content-Type', 'application/json; charset=utf-8');
    ctx.body = stringifyJson(reply.json);
  } else if (reply.stream) ctx.body = reply.stream;
  else sendEmpty(ctx, reply.status);
  // Set after the body, since Koa drops a length that it did not count itself.
  ctx.set({ ...reply.headers });
}

/** Writes the error envelope; empty `details` become null. */
export function sendV2Error(ctx: Koa.Context, error: V2Error): void {
  const { code, message, details } = error;
  const isEmpty = isJsonObject(details) && Object.keys(details).length === 0;
  const headers: { [name: string]: string } = {};
  if (error.retryAfterSeconds !== undefined)
    headers['Retry-After'] = String(error.retryAfterSeconds);
  if (error.status === 401) headers['WWW-Authenticate'] = 'Bearer';
  // The rest of a refused body is not read.
  if (error.status === 413) headers['Connection'] = 'close';
  const json = { error: { code, message, details: isEmpty ? null : details } };
  sendReply(ctx, { status: error.status, headers, json });
}
