import type Koa from 'koa';
export function createV2Routes(_deps: { jobs: unknown; identify: (ctx: Koa.Context) => unknown; spoolDir: string; maxUploadBytes: number }): Koa.Middleware { return (_ctx, next) => next(); }
