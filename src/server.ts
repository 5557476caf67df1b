import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Config, isLoopback, packageVersion } from './config.ts';
import { openDataDir } from './data-dir.ts';
import { type EngineDeps, createEngine } from './engine/engine.ts';
import { createV2Routes } from './engine/http.ts';
import { DEFAULT_LIMITS } from './engine/limits.ts';
import { openSqliteLedger } from './ledger/sqlite.ts';
import { ALL_NODES } from './nodes/library.ts';
import { objectInfo } from './nodes/object-info.ts';
import type { Logger } from './telemetry.ts';
import { createTrace } from './trace.ts';
import { createAcceptor } from './v1/accept.ts';
import { createApp } from './v1/app.ts';
import { createBoard } from './v1/board.ts';
import { catalogRoutes } from './v1/catalog.ts';
import { fileRoutes, signedViews } from './v1/files.ts';
import { createFollower } from './v1/follower.ts';
import { createGuard } from './v1/guard.ts';
import { healthRoutes } from './v1/health.ts';
import { historyRoutes } from './v1/history.ts';
import { homePage } from './v1/home.ts';
import { createHub } from './v1/hub.ts';
import { createIdentify } from './v1/identity.ts';
import { jobRoutes } from './v1/jobs.ts';
import { promptRoutes } from './v1/prompt.ts';
import { queueRoutes } from './v1/queue.ts';
import { createSlots } from './v1/render.ts';
import { resumePrompts } from './v1/resume.ts';
import { createRewriter } from './v1/rewrite.ts';
import { createViewSigner } from './v1/signed-url.ts';
import { createCounter } from './v1/submission.ts';
import { createUpgrade } from './v1/upgrade.ts';

/** A running server; `close` returns when everything is recorded and every socket told. */
export type Running = { readonly url: string; readonly port: number; close(): Promise<void> };

const SIGNED_LINK_MS = 10 * 60_000;
const DECODERS = 2;
const SWEEP_MS = 60_000;
const CACHE_BYTES = 1024 ** 3;

/** The node classes a server runs: by name here, as a module for its worker threads. */
export type Library = Pick<EngineDeps, 'nodes' | 'nodesModule'>;

/** Builds the house from its parts and opens the door. */
export async function startServer(
  config: Config,
  log: Logger,
  library: Library = { nodes: ALL_NODES },
): Promise<Running> {
  const now = Date.now;
  const version = packageVersion();
  const dir = openDataDir(config.dataDir);
  const ledger = openSqliteLedger({ path: dir.database });
  const engine = await createEngine({
    ledger,
    dataDir: dir.root,
    ...library,
    log,
    clock: now,
    limits: {
      ...DEFAULT_LIMITS,
      concurrency: config.concurrency,
      maxQueued: config.queueLimit,
      jobTimeMs: config.jobTimeoutMs,
      jobMemoryBytes: config.jobMemoryBytes,
      retentionMs: config.retentionMs,
      assetBudgetBytes: config.diskBudgetBytes,
      sweepIntervalMs: SWEEP_MS,
      cacheBytes: CACHE_BYTES,
    },
  });
  const info = objectInfo([...library.nodes.values()]);
  const trace = createTrace();
  const jobs = trace.watch(engine);

  const guard = createGuard({
    loopbackOnly: isLoopback(config.listen),
    corsOrigin: config.corsOrigin,
  });
  const identify = createIdentify({ secret: dir.secret, localToken: config.localToken });
  const features = { supports_preview_metadata: true, max_upload_size: config.maxUploadBytes };
  const board = createBoard();
  const hub = createHub({
    remaining: board.count,
    serverFlags: features,
    previewMethod: config.previewMethod,
    now,
  });
  const follower = createFollower({
    jobs,
    ledger,
    board,
    hub,
    log,
    now,
    historyLimit: config.historyLimit,
  });
  const rewriter = createRewriter({ files: ledger.files, objectInfo: async () => info });
  const counter = createCounter(Math.floor((await ledger.prompts.highestNumber()) + 1));
  const acceptor = createAcceptor({
    ...{ jobs, ledger, board, follower, rewriter, now },
    objectInfo: async () => info,
  });
  const files = {
    jobs,
    files: ledger.files,
    now,
    view: config.view,
    signer: createViewSigner({ secret: dir.secret, lifetimeMs: SIGNED_LINK_MS, now }),
    decoding: createSlots(DECODERS),
    spoolDir: dir.spool,
    maxUploadBytes: config.maxUploadBytes,
  };
  const limits = { maxBodyBytes: config.maxUploadBytes };
  const app = createApp({
    guard,
    identify,
    corsOrigin: config.corsOrigin,
    log,
    trace: trace.run,
    open: [
      healthRoutes({ jobs: engine }),
      homePage({ version, upstream: config.upstream }),
      signedViews(files),
      createV2Routes({
        jobs: engine,
        identify: (ctx) => identify(ctx.req),
        spoolDir: dir.spool,
        maxUploadBytes: config.maxUploadBytes,
      }),
    ],
    routes: [
      ...promptRoutes({ acceptor, board, counter, ...limits }),
      ...queueRoutes({ jobs, board, log, ...limits }),
      ...historyRoutes({ ledger, ...limits }),
      ...jobRoutes({ jobs, ledger, board, log, ...limits }),
      ...fileRoutes(files),
      ...catalogRoutes({
        objectInfo: async () => info,
        files: ledger.files,
        settings: ledger.settings,
        features,
        version,
        ...limits,
      }),
    ],
  });

  await resumePrompts({ jobs, ledger, follower, log });
  engine.start();
  const server = createHttpServer(app.callback());
  server.on(
    'upgrade',
    createUpgrade({
      ...{ hub, guard, identify, log },
      maxSockets: config.maxSockets,
      maxSocketsPerUser: config.maxSocketsPerUser,
    }),
  );
  const port = await listen(server, config);
  log.info({ port, version, dataDir: join(dir.root), upstream: config.upstream }, 'listening');

  return {
    url: `http://${urlHost(config.listen)}:${port}`,
    port,
    async close() {
      server.close();
      hub.close();
      await follower.close();
      await engine.close();
      await ledger.close();
      server.closeAllConnections();
    },
  };
}

/** Limits that keep a slow or hostile peer from holding the server; honest slow uploads are spared. */
function createHttpServer(handler: Parameters<typeof createServer>[1]): Server {
  const server = createServer(
    {
      maxHeaderSize: 16 * 1024,
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5000,
      requestTimeout: 0,
      // Pollers come every five seconds and more rarely; closing under them looks like a reset.
      keepAliveTimeout: 80_000,
    },
    handler,
  );
  server.maxHeadersCount = 100;
  return server;
}

function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const inUse = cause.code === 'EADDRINUSE';
      const reason = inUse ? 'the port is in use' : cause.message;
      reject(new Error(`cannot listen on ${config.listen}:${config.port}: ${reason}`, { cause }));
    });
    server.listen(config.port, config.listen, () =>
      resolve((server.address() as AddressInfo).port),
    );
  });
}

/** An address as people type it: every interface is reached through this machine. */
function urlHost(listen: string): string {
  return listen.includes(':') ? `[${listen}]` : listen;
}
