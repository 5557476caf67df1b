import { openTracing } from '../tracing/tracing.ts';
import type { Logger } from '../observability/log.ts';
import type { NodeLibrary } from '../engine/job-engine.ts';
import { type UpstreamServices, openUpstream } from './upstream.ts';
import { type Auth, createAuth } from './auth.ts';
import { type Identify, createIdentify } from '../auth/identity.ts';
import type { Config } from '../config/config.ts';
import { packageVersion } from '../config/version.ts';
import { Figures } from '../console/figures.ts';
import { TrafficRecorder } from '../console/traffic-recorder.ts';
import { createBodies } from '../http/json-body.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { Deprecation } from '../migration/deprecation.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import { openUsageCounter } from '../migration/usage-counter.ts';
import { type MeteredServices, Metrics } from '../observability/metrics.ts';
import { LogPanel } from '../observability/log-panel.ts';
import { CallCauses } from '../observability/call-causes.ts';
import { SecretRedactor } from '../observability/secret-redactor.ts';
import { type FrameObserver, TrafficLog } from '../observability/traffic-log.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';
import { LivePrompts } from '../prompts/live-prompts.ts';
import { type PendingReason, pendingRow } from '../prompts/pending-reason.ts';
import type { PromptEventLog } from '../prompts/prompt-event-log.ts';
import { Prompts } from '../prompts/prompts.ts';
import { DEFAULT_PACE } from '../prompts/submission-pace.ts';
import type { SharedCounter } from '../prompts/submission.ts';
import type { PromptSpans } from '../tracing/spans.ts';
import { Hub } from '../sockets/hub.ts';
import { monotonicClock, monotonicNow, systemClock } from '../lib/clock.ts';
import { withExampleInput } from './example-input.ts';
import { openFileServices } from './file-services.ts';
import { connectLogs, openPromptCounter, openPromptEventLog } from './replication.ts';
import { openStore } from './store.ts';

/** The services of one server. Each is built once, here, and passed on by its name. */
export type Services = Awaited<ReturnType<typeof openServices>>;

/** Opens the ledger, the upstream and all services that use them. No call is served yet. */
export async function openServices(
  config: Config,
  { log: operatorLog, nodeLibrary, sessionRecorder }: ServerOptions,
) {
  const now = Date.now;
  const version = packageVersion();
  const logPanel = new LogPanel({
    now,
    startLine: `Holdover ${version} started`,
    sendTo: (...lines) => sockets.sendTo(...lines),
  });
  const log = logPanel.wrap(operatorLog);
  const store = await openStore(config, log);
  const live = new LivePrompts(logPending(log));
  const eventLog = await openPromptEventLog(store, log);
  const causes = new CallCauses(createPromptIdLookup(live));
  const tracing = await openTracing(config.tracing, { version, log, causes });
  const upstreamKey = config.upstream.kind === 'remote' ? config.upstream.key : undefined;
  const secrets = new SecretRedactor([config.localToken, upstreamKey]);
  // Above this log level the traffic log costs nothing.
  const isTrafficLogged = log.isLevelEnabled('debug');
  const trafficLog = isTrafficLogged ? new TrafficLog({ log, secrets, causes }) : undefined;
  const trafficRecorder = new TrafficRecorder({
    now: monotonicNow,
    secrets,
    causes,
  });
  const sockets = createSockets(config, { live, eventLog, log, trafficLog, trafficRecorder });
  await connectLogs(store, logPanel, log);
  const identify = createIdentify({ secret: store.dir.secret, localToken: config.localToken });
  const metrics = new Metrics({
    version,
    upstreamKind: config.upstream.kind,
    identify,
  });
  const upstream = await openUpstream({
    config,
    nodeLibrary,
    log,
    store,
    tracing,
    observers: {
      causes,
      sessionRecorder,
      subscribers: [
        trafficRecorder.portCalls,
        ...(trafficLog ? [trafficLog.portCall] : []),
        metrics.countCall,
      ],
    },
    isWatched(user, jobId) {
      const prompt = live.find(user, jobId);
      if (prompt === undefined) return false;
      return sockets.hasListener(user, prompt.clientId) || eventLog.isWatched(user);
    },
  });
  const { runner } = upstream;
  const auth = createAuth({ config, identify: linkCallers(identify, causes), secrets, runner });
  const usageCounter = await openUsageCounter({ calls: store.ledger.calls, log, now });
  const ledger = withExampleInput(config, runner, store.dir.spool);
  const counter = await openPromptCounter(store.links, ledger);
  const prompts = { live, eventLog, counter, sockets };
  const spans = tracing?.prompts;
  const life = openPrompts({ config, log, metrics, auth, ledger, upstream, spans, ...prompts });
  const metered: MeteredServices = {
    livePrompts: { countByState: () => live.countByState(({ key }) => eventLog.isLeader(key)) },
    prompts: life,
    hub: sockets,
    upstream: runner,
  };
  metrics.watch(metered);
  const figures = new Figures({
    now,
    totals: () => metrics.totals(),
    services: metered,
    diskBytes: () => ledger.assets.totalBytes(),
  });
  const deprecation = new Deprecation({
    ...config.deprecationSettings,
    now,
    // The calls of a traced session prepare a migration, and do not count as use of v1.
    countCall: sessionRecorder ? () => {} : (call) => usageCounter.count(call),
  });
  const files = openFileServices(config, { store, ledger, auth, upstream, log, now });
  return {
    config,
    auth,
    bodies: createBodies(config, live, log),
    upstream,
    storage: { store, ledger, files },
    prompts: { ...prompts, life },
    migration: { deprecation, usageCounter, sessionRecorder },
    /** `trafficLog` and `tracing` are `undefined` when they are off. */
    observers: {
      log,
      logPanel,
      metrics,
      figures,
      trafficLog,
      trafficRecorder,
      tracing,
      secrets,
      causes,
    },
  };
}

/** The v2 calls in the name of a caller belong to its request. */
function linkCallers(identify: Identify, causes: CallCauses): Identify {
  return (request) => {
    const caller = identify(request);
    if (caller) causes.linkCaller(caller, request);
    return caller;
  };
}

/**
 * Returns a function that logs a line each time a prompt begins to wait for another reason; `undefined` when the log
 * level does not need it.
 */
function logPending(log: Logger) {
  if (!log.isLevelEnabled('debug')) return undefined;
  return ({ caller, promptId }: LivePrompt, reason: PendingReason): void => {
    const facts = { event: 'prompt.pending', user: caller.user, promptId, reason };
    log.debug(facts, pendingRow(reason).text);
  };
}

/** The feature flags of the server, in `/features` and on every WebSocket. */
export function featuresOf({ maxUploadBytes, assets }: Config) {
  return {
    supports_preview_metadata: true,
    supports_model_type_tags: true,
    max_upload_size: maxUploadBytes,
    extension: { manager: { supports_v4: true } },
    node_replacements: true,
    assets,
  };
}

type SocketParts = Pick<PromptParts, 'live' | 'eventLog' | 'log'> & {
  readonly trafficLog: TrafficLog | undefined;
  readonly trafficRecorder: TrafficRecorder;
};

function createSockets(config: Config, parts: SocketParts): Hub {
  const { live, eventLog, log, trafficLog, trafficRecorder } = parts;
  const { frames: recorded } = trafficRecorder;
  return new Hub({
    remaining: (user) => live.count(user),
    serverFlags: featuresOf(config),
    previewMethod: config.previewMethod,
    onPresenceChange: (user, isThere) => eventLog.watch(user, isThere),
    log,
    frameObserver: trafficLog ? loggedFrames(trafficLog, recorded) : recorded,
  });
}

function loggedFrames(trafficLog: TrafficLog, recorded: FrameObserver): FrameObserver {
  return {
    isOn: () => true,
    record(frame) {
      trafficLog.frame(frame);
      if (recorded.isOn()) recorded.record(frame);
    },
  };
}

/** Finds the id that clients know of a live prompt, by the id of its job or by its key. */
function createPromptIdLookup(live: LivePrompts) {
  return (user: string, id: string): string | undefined =>
    (live.find(user, id) ?? live.list(user).find(({ key }) => key === id))?.promptId;
}

type PromptParts = {
  readonly live: LivePrompts;
  readonly eventLog: PromptEventLog;
  readonly counter: SharedCounter;
  readonly sockets: Hub;
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly auth: Auth;
  readonly ledger: Ledger;
  readonly upstream: UpstreamServices;
  readonly spans: PromptSpans | undefined;
};

function openPrompts(parts: PromptParts): Prompts {
  const { config, metrics, auth, ledger, upstream, sockets, live, eventLog, counter } = parts;
  const { runner, jobs, definitions } = upstream;
  const isRemote = config.upstream.kind === 'remote';
  const { prompts, files } = ledger;
  const pace = config.upstream.kind === 'remote' ? (config.upstream.limits['outbox'] ?? {}) : {};
  return new Prompts({
    jobs: {
      api: jobs,
      objectInfo: definitions.info,
      reupload: runner.reupload,
      keyring: auth.keyring,
      needsCredential: runner.needsCredential,
    },
    records: { prompts, files, eventLog, counter },
    frames: {
      livePrompts: live,
      hub: sockets,
      showsAssetIds: config.assets,
      onEnded: (outcome) => metrics.onPromptEnded(outcome),
      spans: parts.spans,
      log: parts.log,
    },
    policy: {
      traits: { isService: isRemote, mayRerunJobs: runner.mayRerunJobs ?? false },
      durability: isRemote ? 'fsync' : 'soon',
      history: config.history,
      outboxLimit: config.outboxLimit,
      pace: { ...DEFAULT_PACE, ...pace },
      clock: systemClock,
      deadlineClock: monotonicClock,
    },
  });
}

/** The log of a server, the nodes of its engine, and the recorder of a traced session. */
export type ServerOptions = {
  readonly log: Logger;
  readonly nodeLibrary: NodeLibrary;
  readonly sessionRecorder?: SessionRecorder | undefined;
};
