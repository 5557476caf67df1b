import { LOCAL_USER } from '../auth/identity.ts';
import type { Config } from '../config/config.ts';
import { openDefinitions } from '../definitions/open-definitions.ts';
import { objectInfo } from '../nodes/object-info.ts';
import { createCallLog } from '../observability/call-log.ts';
import type { JobApi } from '../protocol/job-api.ts';
import type { Hub } from '../sockets/hub.ts';
import type { Logger } from '../observability/log.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { PromptEventLog } from '../prompts/prompt-event-log.ts';
import type { TrafficLog } from '../observability/traffic-log.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import type { Store } from './store.ts';
import { type NodeLibrary, type OpenedUpstream, openUpstream } from './upstream.ts';

/** The upstream that runs the jobs. */
export type Upstream = {
  readonly runner: OpenedUpstream;
  /** Its port for v1 calls: each call on it is counted, logged and recorded. */
  readonly jobs: JobApi;
  readonly callLog: Pick<ReturnType<typeof createCallLog>, 'begin' | 'end'>;
  readonly definitions: ReturnType<typeof openDefinitions>;
};

/** The options and services that the upstream is opened with. */
type UpstreamParts = {
  readonly config: Config;
  readonly nodeLibrary: NodeLibrary;
  readonly sessionRecorder: SessionRecorder | undefined;
  readonly log: Logger;
  readonly store: Store;
  readonly metrics: Pick<Metrics, 'onUpstreamCall'>;
  readonly sockets: Pick<Hub, 'hasListener'>;
  readonly live: LivePrompts;
  readonly eventLog: Pick<PromptEventLog, 'isWatched'>;
  readonly trafficLog: Pick<TrafficLog, 'wrap'> | undefined;
};

export async function openUpstreamServices({
  config,
  nodeLibrary,
  sessionRecorder,
  log,
  store,
  metrics,
  sockets,
  live,
  eventLog,
  trafficLog,
}: UpstreamParts): Promise<Upstream> {
  const runner = await openUpstream({
    config,
    log,
    library: nodeLibrary,
    ledger: store.ledger,
    links: store.links,
    dir: store.dir,
    keylessUser: LOCAL_USER,
    isWatched(user, jobId) {
      const prompt = live.find(user, jobId);
      if (prompt === undefined) return false;
      return sockets.hasListener(user, prompt.clientId) || eventLog.isWatched(user);
    },
  });
  const definitions = openDefinitions({
    source: config.objectInfo,
    upstream: config.upstream,
    embedded: objectInfo([...nodeLibrary.nodes.values()]),
    cacheDir: store.dir.objectInfo,
    log,
  });
  const callLog = createCallLog();
  const recorded = sessionRecorder?.wrap(runner.jobs) ?? runner.jobs;
  const jobs = callLog.wrap(recorded, metrics.onUpstreamCall);
  return { runner, jobs: trafficLog?.wrap(jobs) ?? jobs, callLog, definitions };
}
