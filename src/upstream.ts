import { join } from 'node:path';
import type { KeptUploads } from './app/kept-uploads.ts';
import type { Config, Upstream } from './config.ts';
import type { DataDir } from './data-dir.ts';
import { type Engine, type EngineDeps, createEngine } from './engine/engine.ts';
import { DEFAULT_LIMITS } from './engine/limits.ts';
import { type SharedFolders, openDisks, openSharedFolders } from './folders/open.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { QueuedDeps } from './queued/engine.ts';
import type { RedisLinks } from './redis.ts';
import type { Logger } from './telemetry.ts';
import type { RemoteJobs } from './v2/client.ts';
import type { RemoteLimits } from './v2/limits.ts';
import type { Caller, JobApi } from './wire/jobs.ts';

/** What runs the jobs, opened, and the plain folders over its files. */
export type OpenUpstream = Runner & {
  readonly folders: SharedFolders;
  /** Sends a file once more from where a copy of it is, if there is one: the id of its new asset. */
  readonly resend: KeptUploads['resend'];
};

type Runner = {
  readonly jobs: JobApi;
  readonly resend?: KeptUploads['resend'];
  /** Whether it lets this caller in. */
  readonly admits: (caller: Caller) => Promise<boolean>;
  /** Whether jobs can be looked after before their owner has called: keys are never stored. */
  readonly needsOwner: (user: string) => boolean;
  /** The folder an upload lies in there, where each has one of its own. */
  readonly uploadFolderOf?: RemoteJobs['uploadFolderOf'];
  /** Event streams it holds open elsewhere. */
  readonly openStreams: () => number;
  /** From now on jobs may run. */
  start(): void;
  close(): Promise<void>;
};

/** The node classes the embedded engine runs: by name here, as a module for its worker threads. */
export type Library = Pick<EngineDeps, 'nodes' | 'nodesModule'>;

type Deps = {
  readonly config: Config;
  readonly log: Logger;
  readonly library: Library;
  readonly ledger: Ledger;
  /** To the Redis that other processes share with this one. */
  readonly links: RedisLinks | undefined;
  readonly dir: DataDir;
  readonly keylessUser: string;
  readonly isWatched: (user: string, jobId: string) => boolean;
};

export async function openUpstream(deps: Deps): Promise<OpenUpstream> {
  const { config, dir, keylessUser } = deps;
  const { upstream } = config;
  const disks = await openDisks(keylessUser, config.folders);
  const alsoUsed = disks.highestNumber;
  const runner =
    upstream.kind === 'embedded'
      ? await openEmbedded({ ...deps, alsoUsed })
      : await openRemote(deps, upstream);
  const { jobs } = runner;
  const folders = await openSharedFolders({ ...deps, disks, jobs, spoolDir: dir.spool });
  return {
    ...runner,
    folders,
    resend: async (caller, file) =>
      (await folders.resend(caller.user, file)) ?? (await runner.resend?.(caller, file)),
    start() {
      runner.start();
      folders.start();
    },
  };
}

async function openEmbedded({
  config,
  log,
  library,
  ledger,
  links,
  dir,
  alsoUsed,
}: Deps & Pick<EngineDeps, 'alsoUsed'>): Promise<Runner> {
  const limits = { ...DEFAULT_LIMITS, ...engineLimits(config) };
  const places = { dataDir: dir.root, spoolDir: dir.spool };
  const base = { ledger, ...places, log, clock: Date.now, limits, alsoUsed };
  const engine = links
    ? await openQueued({ ...library, ...base, links, takeover: config.workerLimits })
    : await createEngine({ ...library, ...base });
  return {
    jobs: engine,
    admits: async () => true,
    needsOwner: () => false,
    openStreams: () => 0,
    start: () => engine.start(),
    close: () => engine.close(),
  };
}

/** Whoever is alone need not load it. */
async function openQueued(deps: QueuedDeps): Promise<Engine> {
  const { createQueuedEngine } = await import('./queued/engine.ts');
  return createQueuedEngine(deps);
}

async function openRemote(deps: Deps, upstream: Upstream & { kind: 'remote' }): Promise<Runner> {
  // A third of all modules; who runs jobs here starts sooner without them.
  const { createRemoteJobs } = await import('./v2/client.ts');
  const { keepUploads } = await import('./app/kept-uploads.ts');
  const { restoreEmbeddedNames } = await import('./app/embedded-prompts.ts');
  const { createBlobs } = await import('./engine/blobs.ts');
  const { log, dir, isWatched, keylessUser } = deps;
  const { url, key, assetMode, labels, streams, redirectHosts } = upstream;
  const remote = createRemoteJobs({
    baseUrl: url,
    credential: key === undefined ? { mode: 'pass-through' } : { mode: 'fixed', key },
    placeSecret: dir.secret,
    log,
    assetMode,
    labels,
    redirectHosts,
    isWatched,
    // Submissions that find no room wait in the outbox, where everybody can see them.
    limits: {
      submitBudgetMs: 0,
      maxStreams: streams,
      ...(upstream.limits as Partial<RemoteLimits>),
    },
  });
  const kept = keepUploads({
    jobs: restoreEmbeddedNames({ jobs: remote, prompts: deps.ledger.prompts }),
    ledger: deps.ledger,
    blobs: createBlobs(join(dir.root, 'blobs')),
    spoolDir: dir.spool,
    budgetBytes: deps.config.diskBudgetBytes,
    log,
    now: Date.now,
  });
  return {
    ...kept,
    uploadFolderOf: remote.uploadFolderOf,
    admits: (caller) => remote.admits(caller),
    openStreams: () => remote.facts().openStreams,
    needsOwner: (user) => key === undefined && user !== keylessUser,
    start: () => {},
    close: () => remote.close(),
  };
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
