import type Koa from 'koa';
import { type Json, stringifyJson } from '../wire/json.ts';
import type { PromptRefusal } from '../wire/v1.ts';

/** A v1 answer that is not a success; thrown anywhere in a handler, rendered once at the rim. */
export class V1Error extends Error {
  override readonly name = 'V1Error';
  readonly status: number;
  /** A text is sent as `text/plain`, JSON as JSON, nothing as an empty body. */
  readonly body: Json | undefined;
  readonly headers: { readonly [name: string]: string };

  constructor(
    status: number,
    body?: Json,
    more: { headers?: { readonly [name: string]: string }; cause?: unknown } = {},
  ) {
    super(`v1 answer ${status}`, { cause: more.cause });
    this.status = status;
    this.body = body;
    this.headers = more.headers ?? {};
  }
}

/** The body of a refused `POST /prompt`; its text is concatenated and shown to people. */
export function promptRefusal(type: string, message: string, details = ''): PromptRefusal {
  return { error: { type, message, details, extra_info: {} }, node_errors: {} };
}

/**
 * Body of the errors where the original answers 500 or a login page: `code` and `message` for
 * hosted-style clients, `error` for the rest, so that every parser finds its word.
 */
export function plainError(code: string, message: string): Json {
  return { code, message, ...(promptRefusal(code, message) as unknown as { [key: string]: Json }) };
}

export function sendJson(ctx: Koa.Context, body: Json, status = 200): void {
  ctx.status = status;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = stringifyJson(body);
}

/** v1's answer of a handler with nothing to say: `Content-Length: 0` and no type. */
export function sendEmpty(ctx: Koa.Context, status = 200): void {
  ctx.status = status;
  ctx.body = Buffer.alloc(0);
  ctx.remove('Content-Type');
}

export function sendText(ctx: Koa.Context, status: number, text: string): void {
  ctx.status = status;
  ctx.set('Content-Type', 'text/plain; charset=utf-8');
  ctx.body = text;
}
