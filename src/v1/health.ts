import type Koa from 'koa';
import type { JobApi } from '../protocol/job-api.ts';
import { sendJson } from '../dialects/errors.ts';

/** `/healthz`: the process answers. `/readyz`: jobs can be run. Neither needs a credential. */
export function healthRoutes({ jobs }: { readonly jobs: Pick<JobApi, 'health'> }): Koa.Middleware {
  return (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    if (ctx.path === '/healthz') return sendJson(ctx, { status: 'ok' });
    return ctx.path === '/readyz' ? sendReadiness(ctx) : next();
  };

  async function sendReadiness(ctx: Koa.Context): Promise<void> {
    const health = await jobs.health();
    if (health.ok) return sendJson(ctx, { status: 'ready', upstream: health.value.upstream });
    sendJson(ctx, { status: 'not ready', reason: health.error.code }, 503);
  }
}
