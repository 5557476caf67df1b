import type { Clock } from '../lib/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import type { Logger } from '../observability/log.ts';
import type { JobApi } from '../protocol/job-api.ts';
import type { TraceRun } from '../tracing/spans.ts';
import type { OutputOptions } from './assets/outputs.ts';
import type { Blobs } from '../blobs/blobs.ts';

export type NodeLibrary = {
  /** The classes that submissions are validated against. The workers run those of `nodesModule`. */
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /**
   * The URL of a compiled module that exports the same classes as `ALL_NODES`. Default: this
   * server's library.
   */
  readonly nodesModule?: string;
};

export type EngineOptions = {
  readonly ledger: Ledger;
  /** The bytes of uploads and outputs. */
  readonly blobs: Blobs;
  readonly library: NodeLibrary;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly limits: EngineLimits;
  /** `undefined`: no traces are made. */
  readonly traceRun?: TraceRun | undefined;
  readonly outputFiles: Pick<OutputOptions, 'highestUsedElsewhere'> & {
    /** The folder for files that nodes make; a folder of blobs is in the same file system. */
    readonly spoolDir: string;
  };
};

/** The embedded v2 service. */
export interface Engine extends JobApi {
  /** Makes the next job of this user in this process compute all nodes anew. */
  forgetResults(user: string): void;
  /** Starts to run the queued jobs, including those of an earlier process. */
  start(): void;
  /** Stops in order: running jobs are recorded as queued, and the next start runs them again. */
  close(): Promise<void>;
}

/** The limits of the embedded engine. */
export type EngineLimits = Readonly<typeof DEFAULT_LIMITS>;

/** Small enough for a laptop. v1 also runs one job at a time. */
export const DEFAULT_LIMITS = {
  /** The number of jobs that run at the same time. */
  concurrency: 1,
  /** The number of jobs that may wait. Further ones are refused with `queue_full`. */
  maxQueued: 1000,
  jobTimeMs: 30 * 60_000,
  jobMemoryBytes: 4 * 2 ** 30,
  /** How long a job may take to react to a stop, before its worker thread is terminated. */
  stopGraceMs: 10_000,
  /** The bytes of pixels and texts of users' previous prompts that each worker caches. */
  cacheBytes: 2 ** 30,
  /** How long a finished job and its outputs are retained. */
  retentionMs: 7 * 24 * 60 * 60_000,
  /** Above this size of all assets, the oldest are removed. */
  assetBudgetBytes: 50 * 2 ** 30,
  sweepIntervalMs: 60_000,
};
