import type Koa from 'koa';
import type { CallStore } from '../ledger/ledger.ts';

import type { UsageCounter } from '../migration/usage-counter.ts';
import { V1Error, plainError, sendJson } from '../dialects/errors.ts';
import type { Authenticate } from '../auth/identity.ts';
import { reportOf } from '../migration/usage-report.ts';

const PATH = '/holdover/report.json';

/** Data of the usage report page: each caller sees only its own clients. */
export function reportRoute(services: {
  readonly calls: Pick<CallStore, 'list'>;
  readonly usageCounter: Pick<UsageCounter, 'flush'>;
  readonly authenticate: Authenticate;
}): Koa.Middleware {
  return (ctx, next) => {
    const isReport = ctx.path === PATH && (ctx.method === 'GET' || ctx.method === 'HEAD');
    return isReport ? sendReport(ctx) : next();
  };

  async function sendReport(ctx: Koa.Context): Promise<void> {
    const caller = await services.authenticate(ctx.req);
    if (caller === undefined) {
      const body = plainError('unauthorized', 'A valid key is needed.');
      throw new V1Error(401, body, { headers: { 'WWW-Authenticate': 'Bearer' } });
    }
    await services.usageCounter.flush();
    const rows = (await services.calls.list()).filter(({ user }) => user === caller.user);
    ctx.set('Cache-Control', 'no-store');
    sendJson(ctx, { clients: reportOf(rows) });
  }
}
