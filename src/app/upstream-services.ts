import { LOCAL_USER } from '../auth/identity.ts';
import type { Config } from '../config/config.ts';
import { openDefinitions } from '../definitions/open-definitions.ts';
import { MODEL_NODES } from '../nodes/model-nodes.ts';
import { objectInfo } from '../nodes/object-info.ts';
import { createCallLog } from '../observability/call-log.ts';
import type { Logger } from '../observability/log.ts';
import type { TrafficRecorder } from '../console/traffic-recorder.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { TrafficLog } from '../observability/traffic-log.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { Store } from './store.ts';
import { type NodeLibrary, openUpstream } from './upstream.ts';

export type UpstreamServices = Awaited<ReturnType<typeof openUpstreamServices>>;

/** The options and services that the upstream is opened with. */
type UpstreamParts = {
  readonly config: Config;
  readonly nodeLibrary: NodeLibrary;
  readonly sessionRecorder: SessionRecorder | undefined;
  readonly log: Logger;
  readonly store: Store;
  /** Called after each call on the upstream. */
  readonly onCall: Metrics['onUpstreamCall'];
  /** Returns true when a socket waits for frames of this job. */
  readonly isWatched: (user: string, jobId: string) => boolean;
  readonly trafficLog: Pick<TrafficLog, 'wrap'> | undefined;
  readonly tracing: Pick<Tracing, 'wrap' | 'headers' | 'record' | 'runs'> | undefined;
  readonly trafficRecorder: Pick<TrafficRecorder, 'wrap'>;
};

/** Opens the upstream that runs the jobs. */
export async function openUpstreamServices(parts: UpstreamParts) {
  const { config, nodeLibrary, sessionRecorder, log, store, trafficLog, tracing, isWatched } =
    parts;
  const runner = await openUpstream({
    config,
    log,
    library: nodeLibrary,
    ledger: store.ledger,
    links: store.links,
    dir: store.dir,
    blobs: store.files.blobs,
    keylessUser: LOCAL_USER,
    isWatched,
    tracing,
  });
  const definitions = await openDefinitions({
    source: config.objectInfo,
    upstream: config.upstream,
    embedded: objectInfo([...nodeLibrary.nodes.values()]),
    described: objectInfo(MODEL_NODES),
    cacheDir: store.dir.objectInfo,
    log,
  });
  const callLog = createCallLog();
  const recorded = sessionRecorder?.wrap(runner.jobs) ?? runner.jobs;
  const counted = callLog.wrap(recorded, parts.onCall);
  const logged = trafficLog?.wrap(counted) ?? counted;
  const jobs = parts.trafficRecorder.wrap(logged);
  const isRemote = config.upstream.kind === 'remote';
  /** `jobs` is the port for v1 calls. Each call on it is counted, logged, recorded and traced. */
  return { runner, jobs: tracing?.wrap(jobs, isRemote) ?? jobs, callLog, definitions };
}
