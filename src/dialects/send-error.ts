import type Koa from 'koa';
import { rulesFor } from './dialect.ts';
import { type FailedCall, errorBody, errorStatus } from './error-body.ts';
import { type V1Error, sendEmpty, sendJson, sendText } from './errors.ts';

/** Answers an error in the form of the call's dialect. */
export function sendError(ctx: Koa.Context, error: V1Error): void {
  const call = failedCall(ctx);
  const status = errorStatus(error, call);
  const body = errorBody(error.fault, call);
  ctx.set(error.headers);
  if (body === undefined) sendEmpty(ctx, status);
  else if (typeof body === 'string') sendText(ctx, status, body);
  else sendJson(ctx, body, status);
}

export function failedCall(ctx: Koa.Context): FailedCall {
  return { method: ctx.method, url: ctx.url, rules: rulesFor(ctx) };
}
