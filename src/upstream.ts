import type { Config, Upstream } from './config.ts';
import type { DataDir } from './data-dir.ts';
import { type EngineDeps, createEngine } from './engine/engine.ts';
import { DEFAULT_LIMITS } from './engine/limits.ts';
import type { Ledger } from './ledger/ledger.ts';
import type { Logger } from './telemetry.ts';
import { createRemoteJobs } from './v2/client.ts';
import type { RemoteLimits } from './v2/limits.ts';
import type { Caller, JobApi } from './wire/jobs.ts';

/** What runs the jobs, opened. */
export type OpenUpstream = {
  readonly jobs: JobApi;
  /** Whether it lets this caller in. */
  readonly admits: (caller: Caller) => Promise<boolean>;
  /** Whether jobs can be looked after before their owner has called: keys are never stored. */
  readonly needsOwner: (user: string) => boolean;
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
  readonly dir: DataDir;
  readonly keylessUser: string;
  readonly isWatched: (user: string, jobId: string) => boolean;
};

export async function openUpstream(deps: Deps): Promise<OpenUpstream> {
  const { upstream } = deps.config;
  return upstream.kind === 'embedded' ? openEmbedded(deps) : openRemote(deps, upstream);
}

async function openEmbedded({ config, log, library, ledger, dir }: Deps): Promise<OpenUpstream> {
  const limits = { ...DEFAULT_LIMITS, ...engineLimits(config) };
  const base = { ledger, dataDir: dir.root, spoolDir: dir.spool, log, clock: Date.now, limits };
  const engine = await createEngine({ ...library, ...base });
  return {
    jobs: engine,
    admits: async () => true,
    needsOwner: () => false,
    openStreams: () => 0,
    start: () => engine.start(),
    close: () => engine.close(),
  };
}

function openRemote(deps: Deps, upstream: Upstream & { kind: 'remote' }): OpenUpstream {
  const { log, dir, isWatched, keylessUser } = deps;
  const { url, key, assetMode, labels, streams } = upstream;
  const remote = createRemoteJobs({
    baseUrl: url,
    credential: key === undefined ? { mode: 'pass-through' } : { mode: 'fixed', key },
    placeSecret: dir.secret,
    log,
    assetMode,
    labels,
    isWatched,
    // Submissions that find no room wait in the outbox, where everybody can see them.
    limits: {
      submitBudgetMs: 0,
      maxStreams: streams,
      ...(upstream.limits as Partial<RemoteLimits>),
    },
  });
  return {
    jobs: remote,
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
