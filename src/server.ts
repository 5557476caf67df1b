import type { RequestListener } from 'node:http';
import { type Config, isLoopback, packageVersion } from './config.ts';
import { openDataDir } from './data-dir.ts';
import { type EngineDeps, createEngine } from './engine/engine.ts';
import { createV2Routes } from './engine/http.ts';
import { DEFAULT_LIMITS } from './engine/limits.ts';
import { createHttpServer, listen, urlOf } from './http-server.ts';
import type { Ledger } from './ledger/ledger.ts';
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
import { PLAIN_SOCKET_ROUTES, createUpgrade } from './v1/upgrade.ts';

/** A running server; `close` returns when everything is recorded and every socket told. */
export type Running = { readonly url: string; readonly port: number; close(): Promise<void> };

const SIGNED_LINK_MS = 10 * 60_000;
const DECODERS = 2;

/** The node classes a server runs: by name here, as a module for its worker threads. */
export type Library = Pick<EngineDeps, 'nodes' | 'nodesModule'>;

/** Builds the house from its parts and opens the door. */
export async function startServer(
  config: Config,
  log: Logger,
  library: Library = { nodes: ALL_NODES },
): Promise<Running> {
  const house = await openHouse(config, log, library);
  const live = createLive(house);
  const app = createApp({
    guard: house.guard,
    identify: house.identify,
    corsOrigin: config.corsOrigin,
    log,
    trace: house.trace.run,
    ...surface(house, live, await firstNumber(house.ledger)),
  });
  await house.ledger.prompts.pruneHistory(config.historyLimit);
  await resumePrompts({ ...house, ...live });
  house.engine.start();
  const server = createHttpServer(app.callback() as RequestListener);
  server.on('upgrade', createUpgrade({ ...house, ...live, ...config }));
  const port = await listen(server, config);
  log.info(
    { port, version: house.version, dataDir: house.dir.root, upstream: config.upstream },
    'listening',
  );
  return {
    url: urlOf(config, port),
    port,
    async close() {
      server.close();
      live.hub.close();
      await live.follower.close();
      await house.engine.close();
      await house.ledger.close();
      server.closeAllConnections();
    },
  };
}

type House = Awaited<ReturnType<typeof openHouse>>;

/** What is there before anybody knocks: files, ledger, engine, and who may come in. */
async function openHouse(config: Config, log: Logger, library: Library) {
  const now = Date.now;
  const dir = openDataDir(config.dataDir);
  const ledger = openSqliteLedger({ path: dir.database });
  const limits = { ...DEFAULT_LIMITS, ...engineLimits(config) };
  const engine = await createEngine({
    ...library,
    ledger,
    dataDir: dir.root,
    log,
    clock: now,
    limits,
  });
  const info = objectInfo([...library.nodes.values()]);
  const trace = createTrace();
  return {
    config,
    log,
    now,
    dir,
    ledger,
    engine,
    trace,
    version: packageVersion(),
    jobs: trace.watch(engine),
    objectInfo: async () => info,
    features: { supports_preview_metadata: true, max_upload_size: config.maxUploadBytes },
    guard: createGuard({ loopbackOnly: isLoopback(config.listen), corsOrigin: config.corsOrigin }),
    identify: createIdentify({ secret: dir.secret, localToken: config.localToken }),
  };
}

/** Prompts on their way, and the sockets that hear of them. */
function createLive(house: House) {
  const { config, now } = house;
  const board = createBoard();
  const hub = createHub({
    remaining: board.count,
    serverFlags: house.features,
    previewMethod: config.previewMethod,
    now,
  });
  const follower = createFollower({ ...house, board, hub, historyLimit: config.historyLimit });
  return { board, hub, follower };
}

/** Every route: those open to all, then the old API word by word. */
function surface(house: House, live: ReturnType<typeof createLive>, first: number) {
  const { config, dir, ledger, identify, now } = house;
  const limits = { maxBodyBytes: config.maxUploadBytes, maxUploadBytes: config.maxUploadBytes };
  const deps = { ...house, ...live, ...limits, spoolDir: dir.spool };
  const rewriter = createRewriter({ files: ledger.files, objectInfo: house.objectInfo });
  const files = {
    ...deps,
    files: ledger.files,
    view: config.view,
    signer: createViewSigner({ secret: dir.secret, lifetimeMs: SIGNED_LINK_MS, now }),
    decoding: createSlots(DECODERS),
  };
  return {
    open: [
      healthRoutes({ jobs: house.engine }),
      homePage({ version: house.version, upstream: config.upstream }),
      signedViews(files),
      createV2Routes({ ...deps, jobs: house.engine, identify: (ctx) => identify(ctx.req) }),
    ],
    routes: [
      ...promptRoutes({
        ...deps,
        acceptor: createAcceptor({ ...deps, rewriter }),
        counter: createCounter(first),
      }),
      ...queueRoutes(deps),
      ...historyRoutes(deps),
      ...jobRoutes(deps),
      ...fileRoutes(files),
      ...PLAIN_SOCKET_ROUTES,
      ...catalogRoutes({ ...deps, files: ledger.files, settings: ledger.settings }),
    ],
  };
}

/** Numbers go on where an earlier process stopped: prompts of its queue are still to run. */
async function firstNumber(ledger: Ledger): Promise<number> {
  return Math.floor((await ledger.prompts.highestNumber()) + 1);
}

function engineLimits(config: Config) {
  return {
    concurrency: config.concurrency,
    maxQueued: config.queueLimit,
    jobTimeMs: config.jobTimeoutMs,
    jobMemoryBytes: config.jobMemoryBytes,
    retentionMs: config.retentionMs,
    assetBudgetBytes: config.diskBudgetBytes,
  };
}
