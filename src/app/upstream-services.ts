import type { Config } from '../config/config.ts';
import { type OpenDefinitions, openDefinitions } from '../definitions/open-definitions.ts';
import { readModelClasses } from '../nodes/model-classes.ts';
import { objectInfo } from '../nodes/object-info.ts';
import type { CallCauses } from '../observability/call-causes.ts';
import { type Logger, listV2Calls } from '../observability/log.ts';
import { type PortSubscriber, observePort } from '../observability/observed-port.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { Store } from './store.ts';
import type { NodeLibrary } from '../engine/job-engine.ts';
import { type OpenedUpstream, openUpstream } from './upstream.ts';
import type { JobApi } from '../protocol/job-api.ts';

export type UpstreamServices = {
  readonly runner: OpenedUpstream;
  /** The port for v1 calls. */
  readonly jobs: JobApi;
  readonly definitions: OpenDefinitions;
};

type PortObservers = {
  readonly causes: CallCauses;
  /** Get the v2 calls that v1 calls become. */
  readonly subscribers: readonly PortSubscriber[];
  readonly sessionRecorder: SessionRecorder | undefined;
};

/** The options and services that the upstream is opened with. */
type UpstreamParts = {
  readonly config: Config;
  readonly nodeLibrary: NodeLibrary;
  readonly log: Logger;
  readonly store: Store;
  /** Returns true when a socket waits for frames of this job. */
  readonly isWatched: (user: string, jobId: string) => boolean;
  readonly tracing: Tracing | undefined;
  readonly observers: PortObservers;
};

/** Opens the upstream that runs the jobs. */
export async function openUpstreamServices(parts: UpstreamParts): Promise<UpstreamServices> {
  const { config, nodeLibrary, log, store, tracing, isWatched } = parts;
  const { causes, sessionRecorder } = parts.observers;
  const runner = await openUpstream({
    config,
    log,
    library: nodeLibrary,
    store,
    isWatched,
    tracing,
  });
  const definitions = openDefinitions({
    source: config.objectInfo,
    upstream: config.upstream,
    embedded: objectInfo([...nodeLibrary.nodes.values()]),
    described: readModelClasses(),
    cacheDir: store.dir.objectInfo,
    log,
  });
  const isRemote = config.upstream.kind === 'remote';
  const subscribers = [
    tracing?.calls(isRemote),
    ...parts.observers.subscribers,
    listV2Calls,
    sessionRecorder?.subscribe(runner.jobs),
  ].filter((subscriber) => subscriber !== undefined);
  const { currentCall } = tracing ?? {};
  const jobs = observePort(runner.jobs, { subscribers, causes, currentCall });
  return { runner, jobs, definitions };
}
