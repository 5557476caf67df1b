import type { RequestListener } from 'node:http';
import { withExampleInput } from './app/example-input.ts';
import { createHttpEntry } from './app/http-entry.ts';
import { shownUpstream } from './config/upstream.ts';
import { packageVersion } from './config/version.ts';
import type { Config } from './config.ts';
import { PASSED_ROUTES, createFront } from './front.ts';
import { openBodies } from './http/open.ts';
import { createHttpServer, listen, onWebSocket, urlOf } from './http-server.ts';
import { createMetrics, named } from './metrics.ts';
import { ALL_NODES } from './nodes/library.ts';
import { objectInfo } from './nodes/object-info.ts';
import { openDefinitions } from './object-info/open.ts';
import { embeddedModels, embeddedV2, remoteApis } from './same-address.ts';
import { openCounter, openLogShare, openPromptJournal, readyForSocket } from './replicas.ts';
import { openStore } from './store.ts';
import type { Tap } from './tap.ts';
import { type Logger, unredacted } from './telemetry.ts';
import { createTrace } from './trace.ts';
import { type Library, openUpstream } from './upstream.ts';
import { createApp } from './v1/app.ts';
import { createDialects } from './v1/dialect.ts';
import { createLivePrompts } from './v1/board.ts';
import { catalogRoutes } from './v1/catalog.ts';
import { fileRoutes, signedViews } from './v1/files.ts';
import { notCounted, openCensus } from './v1/census.ts';
import { openFrontEnd } from './app/front-end.ts';
import { healthRoutes } from './v1/health.ts';
import { historyRoutes } from './v1/history.ts';
import { homePage } from './v1/home.ts';
import { createHub } from './v1/hub.ts';
import { LOCAL_USER, createAuthenticate, createIdentify } from './v1/identity.ts';
import { jobRoutes } from './v1/jobs.ts';
import { createJournal } from './v1/journal.ts';
import { createKeyring } from './v1/keyring.ts';
import { createLeaving } from './v1/leaving.ts';
import { createLogFeed } from './v1/log-feed.ts';
import { promptRoutes } from './v1/prompt.ts';
import { createQuickLane } from './v1/quick.ts';
import { upToDate } from './v1/routes.ts';
import { queueRoutes } from './v1/queue.ts';
import { createSemaphore } from './v1/render.ts';
import { reportRoute } from './v1/report-route.ts';
import { createViewSigner } from './v1/signed-url.ts';
import type { SharedCounter } from './v1/submission.ts';
import { type Prompts, createPrompts } from './v1/submissions.ts';
import { PLAIN_SOCKET_ROUTES, createUpgrade } from './v1/upgrade.ts';
import { UPLOAD_ROOM, createUploadQuota } from './v1/upload-quota.ts';
import { createUserData } from './v1/userdata-store.ts';
import { warmUpSoon } from './warm-up.ts';

/** A running server; `close` returns when everything is recorded and every socket told. */
export type Running = {
  readonly url: string;
  readonly port: number;
  /** Resolves when its ledger has lost what clients were told: there is nothing left to serve. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
};

const DECODERS = 2;
const START_LINE = `Holdover ${packageVersion()} started`;

/** Builds the house from its parts and opens the door. */
export async function startServer(
  config: Config,
  log: Logger,
  library: Library & { readonly tap?: Tap } = { nodes: ALL_NODES },
): Promise<Running> {
  const house = await openHouse(config, log, library);
  const counter = await openCounter({ ...house.store, ledger: house.ledger });
  const live = await createLive(house, counter);
  house.metrics.watch({ ...house, ...live });
  const shown = surface(house, live, counter);
  const app = createApp({
    ...house,
    checkFolder: house.store.checkFolder,
    corsOrigin: config.corsOrigin,
    count: house.metrics.count,
    frontEnd: house.frontEnd && named('/*', house.frontEnd.serve),
    ...shown,
  });
  await house.ledger.prompts.pruneHistory(config.history);
  await live.prompts.resume();
  const quick = createQuickLane(house, shown.routes);
  const front = createFront({ ...house, ...live, quick, serve: app.callback() as RequestListener });
  const server = createHttpServer(house.prefix.before(front), { tls: config.tls });
  const ready = readyForSocket({ ...house, ...live });
  const upgrade = createUpgrade({
    ...house,
    ...live,
    ...config,
    ...house.metrics,
    whenCurrent: ready,
  });
  onWebSocket(server, (request, socket, head) => {
    house.prefix.remove(request);
    house.tap?.onUpgrade(request);
    upgrade(request, socket, head);
  });
  const port = await listen(server, config);
  const upstream = shownUpstream(config.upstream);
  const stopAnnouncing = house.deprecation.announceTo(house.hub.notifyClients);
  log.info({ port, version: house.version, dataDir: house.dir.root, upstream }, 'listening');
  // Only now: the threads it starts load as much as has been loaded so far.
  house.upstream.start();
  house.definitions.start();
  const warming = warmUpSoon(live, log);
  return {
    url: urlOf(config, port),
    port,
    lost: house.store.lost,
    async close() {
      clearTimeout(warming);
      stopAnnouncing();
      server.close();
      house.logFeed.close();
      house.hub.close();
      live.passThrough?.close();
      await house.upstream.folders.close();
      await live.prompts.close();
      await live.models?.close();
      await house.definitions.close();
      await house.upstream.close();
      await house.census.close();
      await house.store.close();
      server.closeAllConnections();
    },
  };
}

type House = Awaited<ReturnType<typeof openHouse>>;
type Live = Awaited<ReturnType<typeof createLive>>;

/** What is there before anybody knocks: files, ledger, engine, and who may come in. */
async function openHouse(
  config: Config,
  operatorsLog: Logger,
  { tap, ...library }: Library & { readonly tap?: Tap },
) {
  const now = Date.now;
  const logFeed = createLogFeed({ tell: (...logs) => hub.sendTo(...logs) });
  const journal = createJournal({ now, startLine: START_LINE, onEntry: logFeed.push });
  const log = journal.watch(operatorsLog);
  const store = await openStore(config, log);
  const { dir, ledger } = store;
  const features = { supports_preview_metadata: true, max_upload_size: config.maxUploadBytes };
  const livePrompts = createLivePrompts();
  const promptEventLog = await openPromptJournal(store, log);
  const hub = createHub({
    remaining: livePrompts.count,
    serverFlags: features,
    previewMethod: config.previewMethod,
    onPresenceChange: (user, isThere) => promptEventLog.watch(user, isThere),
    log,
  });
  const logShare = await openLogShare(store, { logFeed, journal }, log);
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
    copiesDir: dir.objectInfo,
    log,
  });
  const trace = createTrace();
  const census = await openCensus({ calls: ledger.calls, log, now });
  const keyring = createKeyring();
  const identify = createIdentify({ secret: dir.secret, localToken: config.localToken });
  const metrics = createMetrics({ version: packageVersion(), config, identify });
  return {
    config,
    log,
    answers: journal.watch(unredacted(operatorsLog)),
    journal,
    logFeed,
    logShare,
    frontEnd: openFrontEnd(config, definitions),
    now,
    store,
    dir,
    ledger: withExampleInput({ config, upstream, dir }),
    livePrompts,
    bodies: openBodies(config, livePrompts, log),
    promptEventLog,
    hub,
    upstream,
    keyring,
    trace,
    metrics,
    version: packageVersion(),
    tap,
    jobs: trace.watch(tap?.watch(upstream.jobs) ?? upstream.jobs, metrics.onAnswer),
    definitions,
    objectInfo: definitions.info,
    features,
    dialects: createDialects(config.dialect),
    ...createHttpEntry(config),
    census,
    deprecation: createLeaving({ ...config.endOfV1, now, count: tap ? notCounted : census.count }),
    identify,
    authenticate: createAuthenticate({ identify, admits: upstream.admits, onCaller: keyring.note }),
  };
}

/** Prompts on their way with the sockets that hear of them, and model calls on theirs. */
async function createLive(house: House, counter: SharedCounter) {
  const prompts = promptsOf(house, counter);
  return {
    prompts,
    models: await embeddedModels(house),
    passThrough: await remoteApis({ ...house, ...prompts }),
  };
}

function promptsOf(house: House, counter: SharedCounter): Prompts {
  const { config, upstream } = house;
  const isRemote = config.upstream.kind === 'remote';
  return createPrompts({
    ...house,
    onEnded: house.metrics.onEnded,
    counter,
    promptEventLog: house.promptEventLog,
    mayAcceptPartially: isRemote,
    mayLoseJobs: isRemote,
    needsOwner: upstream.needsOwner,
    uploadFolderOf: upstream.uploadFolderOf,
    resend: upstream.resend,
    history: config.history,
    outboxLimit: config.outboxLimit,
    retryPolicy: config.upstream.kind === 'remote' ? (config.upstream.limits['outbox'] ?? {}) : {},
  });
}

/** Every route: those open to all, then the old API word by word. */
function surface(house: House, live: Live, counter: SharedCounter) {
  const { config, dir, ledger, now } = house;
  const { maxUploadBytes } = config;
  const deps = { ...house, ...live.prompts, maxUploadBytes, spoolDir: dir.spool };
  const files = {
    ...deps,
    files: ledger.files,
    view: config.view,
    signer: createViewSigner({ secret: dir.secret, now }),
    decoding: createSemaphore(DECODERS),
    quota: createUploadQuota(UPLOAD_ROOM),
    fate: config.upstream.kind === 'remote' ? ('goes on' as const) : ('stays' as const),
    callerOf: house.keyring.callerOf,
  };
  const page = homePage({
    version: house.version,
    upstream: shownUpstream(config.upstream),
    path: house.frontEnd ? '/holdover' : '/',
    addresses: house.addresses,
  });
  return {
    first: [...(house.tap ? [house.tap.serve] : []), named('/view', signedViews(files))],
    through: [
      named('/(healthz|readyz)', healthRoutes({ jobs: house.upstream.jobs })),
      house.metrics.serve,
      named('/holdover', reportRoute({ ...house, calls: ledger.calls })),
      named('/holdover', page),
      ...embeddedV2({ ...house, ...live.prompts }).map((v2) => named('/api/v2/*', v2)),
      ...(live.passThrough
        ? [
            named(PASSED_ROUTES.v2, live.passThrough.v2),
            named(PASSED_ROUTES.router, live.passThrough.router),
          ]
        : []),
      ...(live.models ? [named('/v1/models/*', live.models.middleware)] : []),
    ],
    routes: [
      ...upToDate(live.prompts, [
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
        userData: createUserData({ root: dir.userData, quotaBytes: config.userdataQuotaBytes }),
        ...house.frontEnd,
      }),
    ],
  };
}
