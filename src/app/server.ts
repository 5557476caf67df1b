import type { RequestListener } from 'node:http';
import { withExampleInput } from './example-input.ts';
import { createHttpEntry } from './http-access.ts';
import { upstreamName } from '../config/upstream.ts';
import { packageVersion } from '../config/version.ts';
import type { Config } from '../config/config.ts';
import { PASS_THROUGH_ROUTES, createRequestEntry } from './request-entry.ts';
import { createBodies } from '../http/open-bodies.ts';
import { createHttpServer, listen, onWebSocket, urlOf } from '../http/server.ts';
import { createMetrics, withRouteLabel } from '../observability/metrics.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { objectInfo } from '../nodes/object-info.ts';
import { openDefinitions } from '../definitions/open-definitions.ts';
import { openEmbeddedRouter, mountEmbeddedV2, openPassThrough } from './mount-v2.ts';
import {
  openPromptCounter,
  openSharedLogOf,
  openPromptEventLog,
  createSocketPreparation,
} from './replication.ts';
import { openStore } from './store.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import { type Logger, withoutRedaction } from '../observability/log.ts';
import { createCallLog } from '../observability/call-log.ts';
import { type NodeLibrary, openUpstream } from './upstream.ts';
import { createApp } from '../v1/app.ts';
import { createDialects } from '../dialects/dialect.ts';
import { createLivePrompts } from '../prompts/live-prompts.ts';
import { catalogRoutes } from '../v1/catalog.ts';
import { fileRoutes, signedViewMiddleware } from '../v1/file-routes.ts';
import { ignoreUsage, openUsageCounter } from '../migration/usage-counter.ts';
import { openFrontend } from './frontend.ts';
import { healthRoutes } from '../v1/health.ts';
import { historyRoutes } from '../v1/history.ts';
import { homePage } from '../pages/home-page.ts';
import { createHub } from '../sockets/hub.ts';
import { LOCAL_USER, createAuthenticate, createIdentify } from '../auth/identity.ts';
import { jobRoutes } from '../v1/jobs.ts';
import { createLogBuffer } from '../observability/log-buffer.ts';
import { createKeyring } from '../auth/keyring.ts';
import { createDeprecation } from '../migration/deprecation.ts';
import { createLogFeed } from '../observability/log-subscriptions.ts';
import { promptRoutes } from '../v1/prompt.ts';
import { createFastPath } from '../v1/fast-path.ts';
import { afterCatchUp } from '../v1/routes.ts';
import { queueRoutes } from '../v1/queue.ts';
import { createSemaphore } from '../lib/concurrency.ts';
import { reportRoute } from '../pages/usage-report-route.ts';
import { createViewSigner } from '../auth/signed-view.ts';
import type { SharedCounter } from '../prompts/submission.ts';
import { type Prompts, createPrompts } from '../prompts/prompts.ts';
import { PLAIN_SOCKET_ROUTES, createUpgrade } from '../v1/upgrade.ts';
import { UPLOAD_LIMITS, createUploadQuota } from '../http/upload-quota.ts';
import { createUserDataStore } from '../files/user-data-store.ts';
import { scheduleWarmUp } from './warm-up.ts';

/** A running server; `close` resolves when everything is recorded and every socket is closed. */
export type RunningServer = {
  readonly url: string;
  readonly port: number;
  /** Resolves when its ledger has lost acknowledged data: there is nothing left to serve. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
};

const MAX_DECODERS = 2;
const START_LINE = `Holdover ${packageVersion()} started`;

/** Builds the services and opens the server. */
export async function startServer(
  config: Config,
  log: Logger,
  library: NodeLibrary & { readonly sessionRecorder?: SessionRecorder } = { nodes: ALL_NODES },
): Promise<RunningServer> {
  const appServices = await openAppServices(config, log, library);
  const counter = await openPromptCounter({ ...appServices.store, ledger: appServices.ledger });
  const promptServices = await createLiveServices(appServices, counter);
  appServices.metrics.watch({ ...appServices, ...promptServices });
  const surfaceRoutes = createRoutes(appServices, promptServices, counter);
  const app = createApp({
    ...appServices,
    checkDataDir: appServices.store.checkDataDir,
    corsOrigin: config.corsOrigin,
    countRequests: appServices.metrics.count,
    frontEnd: appServices.frontEnd && withRouteLabel('/*', appServices.frontEnd.serve),
    ...surfaceRoutes,
  });
  await appServices.ledger.prompts.pruneHistory(config.history);
  await promptServices.prompts.resume();
  const fastPath = createFastPath(appServices, surfaceRoutes.routes);
  const requestEntry = createRequestEntry({
    ...appServices,
    ...promptServices,
    fastPath,
    serveWithApp: app.callback() as RequestListener,
  });
  const server = createHttpServer(appServices.prefix.before(requestEntry), { tls: config.tls });
  const ready = createSocketPreparation({ ...appServices, ...promptServices });
  const upgrade = createUpgrade({
    ...appServices,
    ...promptServices,
    ...config,
    ...appServices.metrics,
    whenCurrent: ready,
  });
  onWebSocket(server, (request, socket, head) => {
    appServices.prefix.remove(request);
    appServices.sessionRecorder?.onUpgrade(request);
    upgrade(request, socket, head);
  });
  const port = await listen(server, config);
  const upstream = upstreamName(config.upstream);
  const stopAnnouncing = appServices.deprecation.startAnnouncing(appServices.hub.notifyClients);
  const { version, dir } = appServices;
  log.info({ event: 'server.listening', port, version, dataDir: dir.root, upstream }, 'listening');
  // Only now: the threads it starts load as much as has been loaded so far.
  appServices.upstream.start();
  appServices.definitions.start();
  const warmUpTimer = scheduleWarmUp(promptServices, log);
  return {
    url: urlOf(config, port),
    port,
    lost: appServices.store.lost,
    async close() {
      clearTimeout(warmUpTimer);
      stopAnnouncing();
      server.close();
      appServices.logFeed.close();
      appServices.hub.close();
      promptServices.passThrough?.close();
      await appServices.upstream.folders.close();
      await promptServices.prompts.close();
      await promptServices.models?.close();
      await appServices.definitions.close();
      await appServices.upstream.close();
      await appServices.usageCounter.close();
      await appServices.store.close();
      server.closeAllConnections();
    },
  };
}

type AppServices = Awaited<ReturnType<typeof openAppServices>>;
type LiveServices = Awaited<ReturnType<typeof createLiveServices>>;

/** The services that exist before the first call: files, ledger, engine, authentication. */
async function openAppServices(
  config: Config,
  operatorLog: Logger,
  { sessionRecorder, ...library }: NodeLibrary & { readonly sessionRecorder?: SessionRecorder },
) {
  const now = Date.now;
  const logFeed = createLogFeed({ sendTo: (...logs) => hub.sendTo(...logs) });
  const journal = createLogBuffer({ now, startLine: START_LINE, onEntry: logFeed.push });
  const log = journal.wrap(operatorLog);
  const store = await openStore(config, log);
  const { dir, ledger } = store;
  const features = { supports_preview_metadata: true, max_upload_size: config.maxUploadBytes };
  const livePrompts = createLivePrompts();
  const promptEventLog = await openPromptEventLog(store, log);
  const hub = createHub({
    remaining: livePrompts.count,
    serverFlags: features,
    previewMethod: config.previewMethod,
    onPresenceChange: (user, isThere) => promptEventLog.watch(user, isThere),
    log,
  });
  const logShare = await openSharedLogOf(store, { logFeed, journal }, log);
  const upstream = await openUpstream({
    config,
    log,
    library,
    ledger,
    links: store.links,
    dir,
    keylessUser: LOCAL_USER,
    isWatched(user, jobId) {
      const prompt = livePrompts.find(user, jobId);
      if (prompt === undefined) return false;
      return hub.hasListener(user, prompt.clientId) || promptEventLog.isWatched(user);
    },
  });
  const definitions = openDefinitions({
    source: config.objectInfo,
    upstream: config.upstream,
    embedded: objectInfo([...library.nodes.values()]),
    cacheDir: dir.objectInfo,
    log,
  });
  const trace = createCallLog();
  const usageCounter = await openUsageCounter({ calls: ledger.calls, log, now });
  const keyring = createKeyring();
  const identify = createIdentify({ secret: dir.secret, localToken: config.localToken });
  const metrics = createMetrics({ version: packageVersion(), config, identify });
  return {
    config,
    log,
    answers: journal.wrap(withoutRedaction(operatorLog)),
    journal,
    logFeed,
    logShare,
    frontEnd: openFrontend(config, definitions),
    now,
    store,
    dir,
    ledger: withExampleInput({ config, upstream, dir }),
    livePrompts,
    bodies: createBodies(config, livePrompts, log),
    promptEventLog,
    hub,
    upstream,
    keyring,
    trace,
    metrics,
    version: packageVersion(),
    sessionRecorder,
    jobs: trace.wrap(sessionRecorder?.wrap(upstream.jobs) ?? upstream.jobs, metrics.onAnswer),
    definitions,
    objectInfo: definitions.info,
    features,
    dialects: createDialects(config.dialect),
    ...createHttpEntry(config),
    usageCounter,
    deprecation: createDeprecation({
      ...config.deprecationSettings,
      now,
      countCall: sessionRecorder ? ignoreUsage : usageCounter.count,
    }),
    identify,
    authenticate: createAuthenticate({
      identify,
      acceptsCaller: upstream.acceptsCaller,
      onCaller: keyring.remember,
    }),
  };
}

/** The services of live prompts and of model calls. */
async function createLiveServices(appServices: AppServices, counter: SharedCounter) {
  const prompts = promptsOf(appServices, counter);
  return {
    prompts,
    models: await openEmbeddedRouter(appServices),
    passThrough: await openPassThrough({ ...appServices, ...prompts }),
  };
}

function promptsOf(appServices: AppServices, counter: SharedCounter): Prompts {
  const { config, upstream } = appServices;
  const isRemote = config.upstream.kind === 'remote';
  return createPrompts({
    ...appServices,
    onEnded: appServices.metrics.onEnded,
    counter,
    promptEventLog: appServices.promptEventLog,
    mayAcceptPartially: isRemote,
    mayLoseJobs: isRemote,
    needsOwner: upstream.needsCallerKey,
    uploadFolderOf: upstream.uploadFolderOf,
    resend: upstream.reupload,
    history: config.history,
    outboxLimit: config.outboxLimit,
    retryPolicy: config.upstream.kind === 'remote' ? (config.upstream.limits['outbox'] ?? {}) : {},
  });
}

/** Every route: those open to all, then the old API word by word. */
function createRoutes(
  appServices: AppServices,
  promptServices: LiveServices,
  counter: SharedCounter,
) {
  const { config, dir, ledger, now } = appServices;
  const { maxUploadBytes } = config;
  const deps = { ...appServices, ...promptServices.prompts, maxUploadBytes, spoolDir: dir.spool };
  const files = {
    ...deps,
    files: ledger.files,
    view: config.view,
    signer: createViewSigner({ secret: dir.secret, now }),
    decoding: createSemaphore(MAX_DECODERS),
    quota: createUploadQuota(UPLOAD_LIMITS),
    fate: config.upstream.kind === 'remote' ? ('goes on' as const) : ('stays' as const),
    callerOf: appServices.keyring.callerOf,
  };
  const startPage = homePage({
    version: appServices.version,
    upstream: upstreamName(config.upstream),
    path: appServices.frontEnd ? '/holdover' : '/',
    addresses: appServices.addresses,
  });
  return {
    beforeAuthentication: [
      ...(appServices.sessionRecorder ? [appServices.sessionRecorder.serve] : []),
      withRouteLabel('/view', signedViewMiddleware(files)),
    ],
    publicMiddleware: [
      withRouteLabel('/(healthz|readyz)', healthRoutes({ jobs: appServices.upstream.jobs })),
      appServices.metrics.serve,
      withRouteLabel('/holdover', reportRoute({ ...appServices, calls: ledger.calls })),
      withRouteLabel('/holdover', startPage),
      ...mountEmbeddedV2({ ...appServices, ...promptServices.prompts }).map((v2) =>
        withRouteLabel('/api/v2/*', v2),
      ),
      ...(promptServices.passThrough
        ? [
            withRouteLabel(PASS_THROUGH_ROUTES.v2, promptServices.passThrough.v2),
            withRouteLabel(PASS_THROUGH_ROUTES.router, promptServices.passThrough.router),
          ]
        : []),
      ...(promptServices.models
        ? [withRouteLabel('/v1/models/*', promptServices.models.middleware)]
        : []),
    ],
    routes: [
      ...afterCatchUp(promptServices.prompts, [
        ...promptRoutes({ ...deps, counter }),
        ...queueRoutes(deps),
        ...jobRoutes(deps),
      ]),
      ...historyRoutes(deps),
      ...fileRoutes(files),
      ...PLAIN_SOCKET_ROUTES,
      ...catalogRoutes({
        ...deps,
        files: ledger.files,
        settings: ledger.settings,
        userData: createUserDataStore({
          root: dir.userData,
          quotaBytes: config.userdataQuotaBytes,
        }),
        ...appServices.frontEnd,
      }),
    ],
  };
}
