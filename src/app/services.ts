import type { NodeLibrary } from '../engine/job-engine.ts';
import { type Identify, createIdentify } from '../auth/identity.ts';
import type { Config } from '../config/config.ts';
import { packageVersion } from '../config/version.ts';
import { Figures } from '../console/figures.ts';
import { type BodyReader, createBodies } from '../http/json-body.ts';
import type { CallStore, Ledger } from '../ledger/ledger.ts';
import { Deprecation } from '../migration/deprecation.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import { type UsageCounter, openUsageCounter } from '../migration/usage-counter.ts';
import type { CallCauses } from '../observability/call-causes.ts';
import type { Logger } from '../observability/log.ts';
import { LogPanel } from '../observability/log-panel.ts';
import type { MeteredServices, Metrics } from '../observability/metrics.ts';
import { LivePrompts } from '../prompts/live-prompts.ts';
import { type Auth, createAuth } from './auth.ts';
import { withExampleInput } from './example-input.ts';
import { type FileServices, openFileServices } from './file-services.ts';
import { type Observers, openObservers, portObserversOf } from './observers.ts';
import { type PromptServices, logPending, openPrompts } from './prompts.ts';
import { connectLogs, openPromptCounter, openPromptEventLog } from './replication.ts';
import { createSockets } from './sockets.ts';
import { type Store, openStore } from './store.ts';
import { type OpenedUpstream, type UpstreamServices, openUpstream } from './upstream.ts';

/** The services of one server. Each is built once, here, and passed on by its name. */
export type Services = {
  readonly config: Config;
  readonly auth: Auth;
  readonly bodies: BodyReader;
  readonly upstream: UpstreamServices;
  readonly storage: {
    readonly store: Store;
    readonly ledger: Ledger;
    readonly files: FileServices;
  };
  readonly prompts: PromptServices;
  readonly migration: {
    readonly deprecation: Deprecation;
    readonly usageCounter: UsageCounter;
    readonly sessionRecorder: SessionRecorder | undefined;
  };
  readonly observers: Observers & { readonly logPanel: LogPanel; readonly figures: Figures };
};

/** The log of a server, the nodes of its engine, and the recorder of a traced session. */
export type ServerOptions = {
  readonly log: Logger;
  readonly nodeLibrary: NodeLibrary;
  readonly sessionRecorder?: SessionRecorder | undefined;
};

/** Opens the ledger, the upstream and all services that use them. No call is served yet. */
export async function openServices(
  config: Config,
  { log: operatorLog, nodeLibrary, sessionRecorder }: ServerOptions,
): Promise<Services> {
  const opened = await openStoreAndSockets(config, operatorLog);
  const { store, identify, live, eventLog, sockets, observers, logPanel } = opened;
  const { log, tracing, secrets, causes } = observers;
  const upstream = await openUpstream({
    config,
    nodeLibrary,
    log,
    store,
    tracing,
    observers: portObserversOf(observers, sessionRecorder),
    isWatched(user, jobId) {
      const prompt = live.find(user, jobId);
      if (prompt === undefined) return false;
      return sockets.hasListener(user, prompt.clientId) || eventLog.isWatched(user);
    },
  });
  const { runner } = upstream;
  const auth = createAuth({ config, identify: linkCallers(identify, causes), secrets, runner });
  const { calls } = store.ledger;
  const migration = await openMigration(config, { calls, log, sessionRecorder });
  const ledger = withExampleInput(config, runner, store.dir.spool);
  const state = { live, eventLog, counter: await openPromptCounter(store.links, ledger), sockets };
  const prompts = openPrompts({ config, state, observers, auth, ledger, upstream });
  const figures = openFigures(observers.metrics, { prompts, runner, ledger });
  const files = openFileServices(config, { store, ledger, auth, upstream, log, now: Date.now });
  return {
    config,
    auth,
    bodies: createBodies(config, live, log),
    upstream,
    storage: { store, ledger, files },
    prompts,
    migration,
    observers: { ...observers, logPanel, figures },
  };
}

/** Opens the services that need no upstream. */
async function openStoreAndSockets(config: Config, operatorLog: Logger) {
  const logPanel = new LogPanel({
    now: Date.now,
    startLine: `Holdover ${packageVersion()} started`,
    sendTo: (...lines) => sockets.sendTo(...lines),
  });
  const log = logPanel.wrap(operatorLog);
  const store = await openStore(config, log);
  const live = new LivePrompts(logPending(log));
  const eventLog = await openPromptEventLog(store, log);
  const identify = createIdentify({ secret: store.dir.secret, localToken: config.localToken });
  const observers = await openObservers(config, { log, live, identify });
  const sockets = createSockets(config, { live, eventLog, observers });
  await connectLogs(store, logPanel, log);
  return { store, identify, live, eventLog, sockets, observers, logPanel };
}

/** The v2 calls in the name of a caller belong to its request. */
function linkCallers(identify: Identify, causes: CallCauses): Identify {
  return (request) => {
    const caller = identify(request);
    if (caller) causes.linkCaller(caller, request);
    return caller;
  };
}

type MigrationParts = {
  readonly calls: CallStore;
  readonly log: Logger;
  readonly sessionRecorder: SessionRecorder | undefined;
};

async function openMigration(
  { deprecationSettings }: Config,
  { calls, log, sessionRecorder }: MigrationParts,
): Promise<Services['migration']> {
  const usageCounter = await openUsageCounter({ calls, log, now: Date.now });
  const deprecation = new Deprecation({
    ...deprecationSettings,
    now: Date.now,
    // The calls of a traced session prepare a migration, and do not count as use of v1.
    countCall: sessionRecorder ? () => {} : (call) => usageCounter.count(call),
  });
  return { deprecation, usageCounter, sessionRecorder };
}

type FigureParts = {
  readonly prompts: PromptServices;
  readonly runner: OpenedUpstream;
  readonly ledger: Ledger;
};

/** Lets the metrics and the console's figures read the services. */
function openFigures(metrics: Metrics, { prompts, runner, ledger }: FigureParts): Figures {
  const { live, eventLog, life, sockets } = prompts;
  const services: MeteredServices = {
    livePrompts: { countByState: () => live.countByState(({ key }) => eventLog.isLeader(key)) },
    prompts: life,
    hub: sockets,
    upstream: runner,
  };
  metrics.watch(services);
  return new Figures({
    now: Date.now,
    totals: () => metrics.totals(),
    services,
    diskBytes: () => ledger.assets.totalBytes(),
  });
}
