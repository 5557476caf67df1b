import type Koa from 'koa';
import { createOperatorCheck } from '../auth/operator.ts';
import { upstreamName } from '../config/upstream.ts';
import { packageVersion } from '../config/version.ts';
import { consoleRoutes, jobHandlers } from '../console/console-routes.ts';
import { trafficHandlers } from '../console/traffic-routes.ts';
import { clientsHandlers } from '../console/server-routes.ts';
import { serverHandlers } from '../console/server-routes.ts';
import type { JobQueueReason } from '../prompts/pending-reason.ts';
import { createProcessCounts } from './process-counts.ts';
import type { Services } from './services.ts';

/** The API of Holdover's own page. */
export function openConsole(
  services: Services,
  jobQueueReason: (jobId: string | null) => Promise<JobQueueReason>,
): Koa.Middleware {
  const { config, auth, prompts, upstream } = services;
  const { ledger, store } = services.storage;
  const access = { authenticate: auth.authenticate, checkOperator: createOperatorCheck(config) };
  const consoleServices = {
    addresses: auth.addresses,
    prompts: ledger.prompts,
    livePrompts: prompts.live,
    jobs: upstream.runner.jobs,
    jobQueueReason,
    now: Date.now,
    whenCurrent: (user: string) => prompts.life.whenCurrent(user),
    facts: {
      version: packageVersion(),
      upstream: upstreamName(config.upstream),
      upstream_kind: config.upstream.kind,
      needs_token: config.localToken !== undefined,
    },
  };
  const { trafficRecorder, secrets, figures } = services.observers;
  const processes = createProcessCounts(store.links, consoleServices);
  return consoleRoutes(access, {
    ...jobHandlers(consoleServices),
    ...trafficHandlers({
      ...consoleServices,
      store: trafficRecorder.store,
      secrets,
      countServers: processes.countServers,
    }),
    ...serverHandlers({
      ...consoleServices,
      config,
      figures,
      assets: ledger.assets,
      discovered: upstream.runner.discovered,
      processes,
    }),
    ...clientsHandlers({
      ...consoleServices,
      calls: ledger.calls,
      usageCounter: services.migration.usageCounter,
    }),
  });
}
