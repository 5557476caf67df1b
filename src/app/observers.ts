import type { Identify } from '../auth/identity.ts';
import type { Config } from '../config/config.ts';
import { packageVersion } from '../config/version.ts';
import { TrafficRecorder } from '../console/traffic-recorder.ts';
import { monotonicNow } from '../lib/clock.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import { CallCauses } from '../observability/call-causes.ts';
import type { Logger } from '../observability/log.ts';
import { Metrics } from '../observability/metrics.ts';
import { SecretRedactor } from '../observability/secret-redactor.ts';
import { TrafficLog } from '../observability/traffic-log.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import { type Tracing, openTracing } from '../tracing/tracing.ts';
import type { PortObservers } from './upstream.ts';

/** The calls and frames of v1 and v2: the lines about them, and the entries of the inspector. */
export type Traffic = {
  /** `undefined` above the log level `debug`, where it costs nothing. */
  readonly log: TrafficLog | undefined;
  readonly recorder: TrafficRecorder;
};

/** The log, metrics, traces and records of one server. */
export type Observers = {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly traffic: Traffic;
  /** `undefined` when traces are off. */
  readonly tracing: Tracing | undefined;
  readonly secrets: SecretRedactor;
  readonly causes: CallCauses;
};

type ObserverParts = {
  readonly log: Logger;
  readonly live: LivePrompts;
  readonly identify: Identify;
};

export async function openObservers(
  config: Config,
  { log, live, identify }: ObserverParts,
): Promise<Observers> {
  const version = packageVersion();
  const { upstream } = config;
  const causes = new CallCauses(createPromptIdLookup(live));
  const tracing = await openTracing(config.tracing, { version, log, causes });
  const upstreamKey = upstream.kind === 'remote' ? upstream.key : undefined;
  const secrets = new SecretRedactor([config.localToken, upstreamKey]);
  const traffic: Traffic = {
    log: log.isLevelEnabled('debug') ? new TrafficLog({ log, secrets, causes }) : undefined,
    recorder: new TrafficRecorder({ now: monotonicNow, secrets, causes }),
  };
  const metrics = new Metrics({ version, upstreamKind: upstream.kind, identify });
  return { log, metrics, traffic, tracing, secrets, causes };
}

/** The observers of the v2 calls that v1 calls become. */
export function portObserversOf(
  { causes, metrics, traffic }: Observers,
  sessionRecorder: SessionRecorder | undefined,
): PortObservers {
  const logged = traffic.log ? [traffic.log.portCall] : [];
  return {
    causes,
    sessionRecorder,
    subscribers: [traffic.recorder.portCalls, ...logged, metrics.countCall],
  };
}

/** Finds the id that clients know of a live prompt, by the id of its job or by its key. */
function createPromptIdLookup(live: LivePrompts) {
  return (user: string, id: string): string | undefined =>
    (live.find(user, id) ?? live.list(user).find(({ key }) => key === id))?.promptId;
}
