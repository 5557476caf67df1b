import { LOCAL_USER } from '../auth/identity.ts';
import { systemClock } from '../lib/clock.ts';
import type { UploadCopies } from './upload-copies.ts';
import type { Config, Upstream } from '../config/config.ts';
import { createEmbeddedEngine } from '../engine/memory/embedded-engine.ts';
import { type EngineOptions, type NodeLibrary, DEFAULT_LIMITS } from '../engine/job-engine.ts';
import { type SharedFolders, openFolderDisks, openSharedFolders } from '../shared-folders/open.ts';
import { type Logger, listV2Calls } from '../observability/log.ts';
import type { RemoteJobs } from '../remote/remote-jobs.ts';
import type { UpstreamCapabilities } from '../remote/capabilities.ts';
import type { RemoteLimits } from '../remote/limits.ts';
import type { RemoteOptions } from '../remote/remote-services.ts';
import type { Store } from './store.ts';
import type { Tracing } from '../tracing/tracing.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import { type OpenDefinitions, openDefinitions } from '../definitions/open-definitions.ts';
import { readModelClasses } from '../nodes/model-classes.ts';
import { objectInfo } from '../nodes/object-info.ts';
import type { CallCauses } from '../observability/call-causes.ts';
import { type PortSubscriber, observePort } from '../observability/observed-port.ts';
import type { SessionRecorder } from '../migration/session-recorder.ts';

export type UpstreamServices = {
  readonly runner: OpenedUpstream;
  /** The port for v1 calls. */
  readonly jobs: JobApi;
  readonly definitions: OpenDefinitions;
};

export type PortObservers = {
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
export async function openUpstream(parts: UpstreamParts): Promise<UpstreamServices> {
  const { config, nodeLibrary, log, store, tracing } = parts;
  const { causes, sessionRecorder } = parts.observers;
  const runner = await openRunner(parts);
  const definitions = openDefinitions({
    source: config.objectInfo,
    upstream: config.upstream,
    embedded: objectInfo([...nodeLibrary.nodes.values()]),
    described: readModelClasses(),
    cacheDir: store.dir.objectInfo,
    log,
  });
  const subscribers = [
    tracing?.calls(config.upstream.kind),
    ...parts.observers.subscribers,
    listV2Calls,
    sessionRecorder?.subscribe(runner.jobs),
  ].filter((subscriber) => subscriber !== undefined);
  const { currentCall } = tracing ?? {};
  const jobs = observePort(runner.jobs, { subscribers, causes, currentCall });
  return { runner, jobs, definitions };
}

/** The upstream that runs the jobs, and the shared folders over its files. */
export type OpenedUpstream = Runner & {
  readonly folders: SharedFolders;
  /** Uploads a file again from its copy. Returns the id of the new asset, if there is a copy. */
  readonly reupload: UploadCopies['reupload'];
};

type Runner = {
  readonly jobs: JobApi;
  readonly reupload?: UploadCopies['reupload'];
  /** Returns true when the upstream accepts this caller's key. */
  readonly acceptsCaller: (caller: Caller) => Promise<boolean>;
  /**
   * Returns true when the jobs of this user can be followed only after the user has called, since keys are
   * never stored.
   */
  readonly needsCredential: (user: string) => boolean;
  /** True when another process may run a job of this one again. */
  readonly mayRerunJobs?: boolean;
  /** Reads the answer to a submission that was passed through. */
  readonly noteSubmitted?: RemoteJobs['noteSubmitted'];
  /** Forwards an upload while it arrives. Absent where uploads stay on this machine. */
  readonly startUpload?: RemoteJobs['startUpload'];
  /**
   * Drops the computed results of a user's earlier jobs. Absent where jobs run in another process.
   */
  readonly forgetResults?: (user: string) => void;
  /** Returns the number of event streams that it has open at a service. */
  readonly openStreams: () => number;
  /** The discovered capabilities of a service. Absent where jobs run here. */
  readonly discovered?: () => UpstreamCapabilities;
  /** Starts running jobs. */
  start(): void;
  close(): Promise<void>;
};

/** Opens the configured upstream and the shared folders. No job runs before `start`. */
async function openRunner(options: UpstreamParts): Promise<OpenedUpstream> {
  const { config, store } = options;
  const { upstream } = config;
  const sharedFolders = await openFolderDisks(LOCAL_USER, config.folders);
  const spoolDir = store.dir.spool;
  const outputFiles = { spoolDir, highestUsedElsewhere: sharedFolders.highestNumber };
  const runner =
    upstream.kind === 'embedded'
      ? await openEmbedded(options, outputFiles)
      : await openRemote(options, upstream);
  const { jobs } = runner;
  const folders = await openSharedFolders({
    ledger: store.ledger,
    log: options.log,
    disks: sharedFolders,
    jobs,
    spoolDir,
  });
  return {
    ...runner,
    folders,
    reupload: async (caller, file) =>
      (await folders.reupload(caller.user, file)) ?? (await runner.reupload?.(caller, file)),
    start() {
      runner.start();
      folders.start();
    },
  };
}

async function openEmbedded(
  { config, log, nodeLibrary: library, store, tracing }: UpstreamParts,
  outputFiles: EngineOptions['outputFiles'],
): Promise<Runner> {
  const { ledger, links } = store;
  const { blobs } = store.files;
  const limits = { ...DEFAULT_LIMITS, ...config.engine };
  const traceRun = tracing?.run;
  const clock = systemClock;
  const base = { ledger, blobs, library, log, clock, limits, outputFiles, traceRun };
  const queue = links && { links, takeover: config.workerLimits };
  const engine = queue
    ? // Loaded on demand: a process with its own queue does not need it.
      await import('../engine/bullmq/distributed-engine.ts').then(({ createDistributedEngine }) =>
        createDistributedEngine(base, queue),
      )
    : await createEmbeddedEngine(base);
  return {
    jobs: tracing?.record(engine) ?? engine,
    acceptsCaller: async () => true,
    needsCredential: () => false,
    mayRerunJobs: links !== undefined,
    openStreams: () => 0,
    forgetResults: (user) => engine.forgetResults(user),
    start: () => engine.start(),
    close: () => engine.close(),
  };
}

async function openRemote(
  options: UpstreamParts,
  upstream: Upstream & { kind: 'remote' },
): Promise<Runner> {
  // Imported on demand: these are a third of all modules, and the embedded engine starts sooner
  // without them.
  const { createRemoteJobs } = await import('../remote/remote-jobs.ts');
  const { UploadCopies } = await import('./upload-copies.ts');
  const { log, store, isWatched } = options;
  const { url, key, assetMode, redirectHosts } = upstream;
  // Tests fix the way in which labels are written.
  const { labels, ...limits } = upstream.limits as Partial<RemoteLimits> & RemoteOptions['format'];
  const remote = createRemoteJobs({
    service: { baseUrl: url, key, redirectHosts },
    uploadPathSecret: store.dir.secret,
    log,
    format: { ...(assetMode !== 'auto' && { assetMode }), ...(labels && { labels }) },
    isWatched,
    traceHeaders: options.tracing?.headers,
    limits,
  });
  const uploadCopies = new UploadCopies({
    jobs: remote,
    ledger: store.ledger,
    blobs: store.files.blobs,
    spoolDir: store.dir.spool,
    budgetBytes: options.config.engine.assetBudgetBytes,
    log,
    now: Date.now,
  });
  return remoteRunner(remote, uploadCopies, (user) => key === undefined && user !== LOCAL_USER);
}

function remoteRunner(
  remote: RemoteJobs,
  uploadCopies: UploadCopies,
  needsCredential: Runner['needsCredential'],
): Runner {
  return {
    jobs: uploadCopies.jobs,
    reupload: (caller, file) => uploadCopies.reupload(caller, file),
    noteSubmitted: (caller, answer) => remote.noteSubmitted(caller, answer),
    startUpload: (caller, upload) => remote.startUpload(caller, upload),
    acceptsCaller: (caller) => remote.acceptsCaller(caller),
    openStreams: () => remote.capabilities().openStreams,
    discovered: () => remote.capabilities(),
    needsCredential,
    start: () => {},
    async close() {
      await uploadCopies.copiesStored();
      await remote.close();
    },
  };
}
