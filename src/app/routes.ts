import type Koa from 'koa';
import { upstreamName } from '../config/upstream.ts';
import { packageVersion } from '../config/version.ts';
import type { ModelRouter } from '../router/router.ts';
import { withRouteLabel } from '../observability/metrics.ts';
import type { Frontend } from '../pages/frontend.ts';
import { homePage } from '../pages/home-page.ts';
import type { PassThrough } from '../passthrough/pass-through.ts';
import { catalogRoutes } from '../v1/catalog.ts';
import { assetRoutes } from '../v1/asset-routes.ts';
import { fileRoutes, signedViewMiddleware } from '../v1/file-routes.ts';
import { healthRoutes } from '../v1/health.ts';
import { historyRoutes } from '../v1/history.ts';
import { jobRoutes } from '../v1/jobs.ts';
import { monotonicClock } from '../lib/clock.ts';
import { promptRoutes } from '../v1/prompt.ts';
import { queueRoutes } from '../v1/queue.ts';
import { type V1Route, whenReady } from '../v1/routes.ts';
import { plainSocketRoutes } from '../v1/upgrade.ts';
import { mountEmbeddedV2 } from './mount-v2.ts';
import { createJobQueueReason, neededParts } from './readiness.ts';
import type { Services } from './services.ts';
import { featuresOf } from './sockets.ts';
import { createOperatorCheck } from '../auth/operator.ts';
import { consoleRoutes, jobHandlers } from '../console/console-routes.ts';
import { trafficHandlers } from '../console/traffic-routes.ts';
import { clientsHandlers, serverHandlers } from '../console/server-routes.ts';
import type { JobQueueReason } from '../prompts/pending-reason.ts';
import { createProcessCounts } from './process-counts.ts';

/** Services that are mounted beside the v1 routes, if they exist. */
export type Mounts = {
  readonly frontend: Frontend | undefined;
  readonly models: ModelRouter | undefined;
  readonly passThrough: PassThrough | undefined;
  /** Returns true when the process will stop soon. */
  readonly isStopping: () => boolean;
};

/** Every route of v1. */
export function v1Routes(services: Services, { frontend }: Mounts): readonly V1Route[] {
  const { bodies, prompts, upstream, observers, config } = services;
  const { ledger, files } = services.storage;
  return [
    ...promptAndJobRoutes(services),
    // A result that is fetched here is not sent to late sockets of any process.
    ...whenReady(
      (user) => prompts.eventLog.followUser(user),
      historyRoutes({ ledger, bodies, markFetched: prompts.life.markFetched }),
    ),
    ...fileRoutes(files.routes),
    ...assetRoutes(
      { ...files.routes, ...files.routes.links, catalog: files.catalog, bodies },
      config,
    ),
    ...plainSocketRoutes(),
    ...catalogRoutes({
      definitions: upstream.definitions,
      files: files.names,
      settings: ledger.settings,
      bodies,
      userData: files.userData,
      uploads: files.uploads,
      info: {
        features: featuresOf(config),
        version: packageVersion(),
        extensions: frontend?.extensions,
        workflowTemplates: frontend?.workflowTemplates,
      },
      logs: observers.logPanel,
    }),
  ];
}

/** When these answer, the live prompts show everything that this user did before, in any process. */
function promptAndJobRoutes(services: Services): readonly V1Route[] {
  const { bodies, upstream, observers } = services;
  const { ledger } = services.storage;
  const { live: livePrompts, life, counter } = services.prompts;
  const { cancel, markFetched, acceptor } = life;
  return whenReady(life.whenCurrent, [
    ...promptRoutes({
      acceptor,
      livePrompts,
      ledger,
      counter,
      bodies,
      clock: monotonicClock,
      onSubmission(caller, promptId) {
        observers.causes.causeOf(caller).promptId = promptId;
        observers.traffic.recorder.submission(caller, promptId);
      },
    }),
    ...queueRoutes({
      livePrompts,
      ledger,
      cancel,
      bodies,
      forgetResults: upstream.runner.forgetResults,
    }),
    ...jobRoutes({ cancel, ledger, livePrompts, bodies, markFetched }),
  ]);
}

/** The recorder of a traced session, and routes that authenticate their callers themselves, or serve all of them. */
export function publicMiddleware(
  services: Services,
  { frontend, models, passThrough, isStopping }: Mounts,
): readonly Koa.Middleware[] {
  const { upstream, observers, config, auth, storage } = services;
  const { sessionRecorder } = services.migration;
  const startPage = homePage({
    version: packageVersion(),
    upstream: upstreamName(config.upstream),
    path: frontend ? '/holdover' : '/',
    addresses: auth.addresses,
  });
  const parts = neededParts(services);
  return [
    ...(sessionRecorder ? [sessionRecorder.serve] : []),
    withRouteLabel('/view', signedViewMiddleware(storage.files.routes)),
    ...(passThrough ? [passThrough.serve] : []),
    withRouteLabel(
      '/(healthz|readyz)',
      healthRoutes({ jobs: upstream.runner.jobs, parts, isStopping }),
    ),
    observers.metrics.serve,
    withRouteLabel('/holdover/api/*', openConsole(services, createJobQueueReason(parts, services))),
    withRouteLabel('/holdover', startPage),
    ...mountEmbeddedV2(services).map((v2) => withRouteLabel('/api/v2/*', v2)),
    ...(models ? [withRouteLabel('/v1/models/*', models.middleware)] : []),
  ];
}

/** The API of Holdover's own page. */
function openConsole(
  services: Services,
  jobQueueReason: (jobId: string | null) => Promise<JobQueueReason>,
): Koa.Middleware {
  const { config, auth, upstream } = services;
  const { ledger, store } = services.storage;
  const access = { authenticate: auth.authenticate, checkOperator: createOperatorCheck(config) };
  const shared = sharedByConsole(services);
  const { traffic, secrets, figures } = services.observers;
  const processes = createProcessCounts(store.links, shared);
  return consoleRoutes(access, {
    ...jobHandlers({ ...shared, jobQueueReason }),
    ...trafficHandlers({
      store: traffic.recorder.store,
      secrets,
      countServers: processes.countServers,
    }),
    ...serverHandlers({
      ...shared,
      config,
      figures,
      assets: ledger.assets,
      discovered: upstream.runner.discovered,
      processes,
    }),
    ...clientsHandlers({
      calls: ledger.calls,
      usageCounter: services.migration.usageCounter,
    }),
  });
}

/** The services of the console's routes for jobs and for the operator. */
function sharedByConsole({ config, auth, prompts, upstream, storage }: Services) {
  return {
    addresses: auth.addresses,
    prompts: storage.ledger.prompts,
    livePrompts: prompts.live,
    jobs: upstream.runner.jobs,
    now: Date.now,
    whenCurrent: (user: string) => prompts.life.whenCurrent(user),
    facts: {
      version: packageVersion(),
      upstream: upstreamName(config.upstream),
      upstream_kind: config.upstream.kind,
      needs_token: config.localToken !== undefined,
    },
  };
}
