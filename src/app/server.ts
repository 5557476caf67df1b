import type { RequestListener, Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Config } from '../config/config.ts';
import { upstreamName } from '../config/upstream.ts';
import { packageVersion } from '../config/version.ts';
import {
  countChanges,
  createHttpServer,
  listen,
  onWebSocket,
  stopListening,
  urlOf,
} from '../http/server.ts';
import { ALL_NODES } from '../nodes/library.ts';
import type { Logger } from '../observability/log.ts';
import { withRouteLabel } from '../observability/metrics.ts';
import { createApp } from '../v1/app.ts';
import { createUpgrade } from '../v1/upgrade.ts';
import { openEmbeddedRouter, openPassThrough } from './mount-v2.ts';
import { type Mounts, publicMiddleware, v1Routes } from './routes.ts';
import { type Services, type ServerOptions, openServices } from './services.ts';
import type { NodeLibrary } from '../engine/job-engine.ts';
import { type Frontend, createFrontend } from '../pages/frontend.ts';
import { openTemplates } from '../pages/templates.ts';
import type { DefinitionSource } from '../definitions/definitions.ts';

/** A running server; `close` resolves when everything is recorded and every socket is closed. */
export type RunningServer = {
  readonly url: string;
  readonly port: number;
  /** Resolves when the ledger has lost acknowledged data: the server must stop. */
  readonly lost: Promise<Error>;
  close(): Promise<void>;
};

type StartOptions = NodeLibrary & Pick<ServerOptions, 'sessionRecorder'>;

/** Builds the services and opens the server. */
export async function startServer(
  config: Config,
  log: Logger,
  { sessionRecorder, ...nodeLibrary }: StartOptions = { nodes: ALL_NODES },
): Promise<RunningServer> {
  const services = await openServices(config, { log, nodeLibrary, sessionRecorder });
  const { prompts, upstream, storage } = services;
  let isStopping = false;
  const mounts: Mounts = {
    frontend: openFrontend(config, upstream.definitions),
    models: await openEmbeddedRouter(services),
    passThrough: await openPassThrough(services),
    isStopping: () => isStopping,
  };
  const server = createServer(services, mounts);
  await storage.ledger.prompts.pruneHistory(config.history);
  await prompts.life.takeOver();
  acceptSockets(server, services);
  const changesUnderWay = countChanges(server);
  const port = await listen(server, config);
  const stopAnnouncing = services.migration.deprecation.startAnnouncing(
    prompts.sockets.notifyClients,
  );
  logStart(log, services, port);
  upstream.runner.start();
  upstream.definitions.start();
  return {
    url: urlOf(config, port),
    port,
    lost: storage.store.lost,
    async close() {
      isStopping = true;
      await delay(config.shutdownDelayMs);
      stopAnnouncing();
      await stopServing(server, services, changesUnderWay);
      await closeServices(services, mounts);
      server.closeAllConnections();
    },
  };
}

function createServer(services: Services, mounts: Mounts): Server {
  const { config, auth, observers, prompts } = services;
  const serve = createKoaApp(services, mounts);
  const recordAndServe: RequestListener = (request, response) => {
    observers.traffic.recorder.beginCall(request, response);
    serve(request, response);
  };
  return createHttpServer(auth.prefix.before(recordAndServe), {
    tls: config.tls,
    log: observers.log,
    dialectOf: auth.dialects.ofCall,
    onAnswered: (request) => prompts.sockets.sendFirstFrames(() => auth.identify(request)?.user),
  });
}

function createKoaApp(services: Services, mounts: Mounts): RequestListener {
  const { config, auth, storage } = services;
  const { causes, metrics, log, tracing, traffic } = services.observers;
  const { frontend } = mounts;
  const app = createApp({
    auth,
    observer: {
      causes,
      onCaller: (request, caller) => traffic.recorder.identify(request, caller),
      onAnswered(call, request) {
        traffic.log?.httpCall(call);
        traffic.recorder.answered(call, request);
      },
      middleware: [metrics.count, ...(tracing ? [tracing.requests] : [])],
    },
    deprecation: services.migration.deprecation,
    routes: {
      public: publicMiddleware(services, mounts),
      v1: v1Routes(services, mounts),
    },
    frontend: frontend && withRouteLabel('/*', frontend.serve),
    corsOrigin: config.corsOrigin,
    log,
    checkDataDir: storage.store.checkDataDir,
  });
  return app.callback() as RequestListener;
}

function acceptSockets(server: Server, services: Services): void {
  const { config, auth, prompts } = services;
  const { deprecation, sessionRecorder } = services.migration;
  const { log, metrics, traffic } = services.observers;
  const { life, sockets: hub } = prompts;
  const upgrade = createUpgrade({
    hub,
    auth,
    log,
    deprecation,
    /** A new socket gets the current state and undelivered frames. */
    async whenCurrent(user) {
      await life.whenCurrent(user);
      // The first round shows which frames a socket of another process received a moment ago.
      await life.whenCurrent(user);
      await hub.channels.preload(user);
    },
    limits: config,
    onUpgrade(status, request) {
      metrics.onUpgrade(status);
      traffic.recorder.upgraded(status, request, auth.identify(request)?.user);
    },
  });
  onWebSocket(server, (request, socket, head) => {
    auth.prefix.remove(request);
    sessionRecorder?.onUpgrade(request);
    upgrade(request, socket, head);
  });
}

function logStart(log: Logger, { config, storage }: Services, port: number): void {
  const fields = {
    event: 'server.listening',
    port,
    version: packageVersion(),
    dataDir: storage.store.dir.root,
    upstream: upstreamName(config.upstream),
  };
  log.info(fields, 'listening');
}

/** Accepts no calls any more, closes the sockets, and waits for the calls in progress. */
async function stopServing(
  server: Server,
  { observers, prompts }: Services,
  changesUnderWay: () => number,
): Promise<void> {
  await stopListening(server);
  observers.logPanel.close();
  observers.traffic.recorder.close();
  observers.figures.close();
  prompts.sockets.close();
  await untilAnswered(server, changesUnderWay);
}

/**
 * How long calls in progress may take when the server stops. Streams are cut off then. A call that
 * changes something takes longer on a busy machine, and its client could not know if the change was
 * made.
 */
const LAST_CALLS_MS = { reading: 2000, changing: 8000 } as const;
const LAST_CALLS_CHECK_MS = 20;

/**
 * Waits for the calls in progress. Neither their clients nor a load balancer can send them to
 * another server: a prompt must not run twice.
 */
async function untilAnswered(server: Server, changesUnderWay: () => number): Promise<void> {
  const beganAtMs = performance.now();
  const openConnections = promisify(server.getConnections.bind(server));
  const limitMs = () => LAST_CALLS_MS[changesUnderWay() > 0 ? 'changing' : 'reading'];
  while (performance.now() - beganAtMs < limitMs()) {
    server.closeIdleConnections();
    if ((await openConnections()) === 0) return;
    await delay(LAST_CALLS_CHECK_MS);
  }
}

/**
 * Closes the services in order: first those that callers use, then those that they need, and the ledger last.
 */
async function closeServices(services: Services, { passThrough, models }: Mounts): Promise<void> {
  const { upstream, prompts, storage, migration, observers } = services;
  passThrough?.close();
  await upstream.runner.folders.close();
  await prompts.life.close();
  await models?.close();
  await storage.files.close();
  await upstream.definitions.close();
  await upstream.runner.close();
  await migration.usageCounter.close();
  await observers.tracing?.close();
  await storage.store.close();
}

/** The front end of `--front-end-root`, with starter workflows for the upstream. */
function openFrontend(
  { frontEndRoot, upstream }: Config,
  definitions: DefinitionSource,
): Frontend | undefined {
  if (frontEndRoot === undefined) return undefined;
  const hasExample = upstream.kind === 'embedded';
  return createFrontend(frontEndRoot, openTemplates({ definitions, hasExample }));
}
