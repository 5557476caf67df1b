import type Koa from 'koa';

/** Sends JSON that is text already. */
export function sendJsonText(ctx: Koa.Context, text: string | Buffer): void {
  ctx.status = 200;
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  ctx.body = text;
}
