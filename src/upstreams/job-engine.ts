import type { Clock } from '../lib/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import type { Logger } from '../observability/log.ts';
import type { JobApi } from '../protocol/job-api.ts';
import type { JobSpans } from '../tracing/job-spans.ts';
import type { OutputOptions } from './assets/outputs.ts';
import type { Blobs } from './blobs.ts';

export type EngineOptions = {
  readonly ledger: Ledger;
  readonly dataDir: string;
  /** The bytes of uploads and outputs. */
  readonly blobs: Blobs;
  /** An empty folder of this process; by default a folder of the data directory is emptied. */
  readonly spoolDir?: string;
  /** Submissions are validated against these; the workers run the classes of `nodesModule`. */
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** URL of a compiled module that exports the same classes as `ALL_NODES`; this server's library by default. */
  readonly nodesModule?: string;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly limits: EngineLimits;
  /** `undefined`: no traces are made. */
  readonly spans?: JobSpans | undefined;
  readonly highestUsedElsewhere?: OutputOptions['highestUsedElsewhere'];
};

/** The part of the port for jobs. */
export type JobCalls = Pick<
  JobApi,
  'submit' | 'recover' | 'get' | 'workflow' | 'events' | 'cancel' | 'list'
>;

/** The part of the port for files. */
export type AssetCalls = Pick<
  JobApi,
  'createAsset' | 'assetFromHash' | 'hasBlob' | 'asset' | 'deleteAsset' | 'content'
>;

/** The embedded v2 service. */
export interface Engine extends JobApi {
  /** The next job of this user that this process runs computes all nodes anew. */
  forgetResults(user: string): void;
  /** Starts to run queued jobs, including those of an earlier process. */
  start(): void;
  /** Stops in order: running jobs are recorded as queued, and the next start runs them again. */
  close(): Promise<void>;
}

/**
 * The limits of the embedded engine.
 * @internal
 */
export type EngineLimits = Readonly<typeof DEFAULT_LIMITS>;

/** Modest enough for a laptop; v1 runs one job at a time too. */
export const DEFAULT_LIMITS = {
  /** Jobs that run at the same time. */
  concurrency: 1,
  /** Jobs that may wait; more are refused with `queue_full`. */
  maxQueued: 1000,
  jobTimeMs: 30 * 60_000,
  jobMemoryBytes: 4 * 2 ** 30,
  /** How long a job may take to react to a stop before its worker thread is terminated. */
  stopGraceMs: 10_000,
  /** Bytes of pixels and texts that each worker caches of its users' previous prompts. */
  cacheBytes: 2 ** 30,
  /** How long a finished job and its outputs are retained. */
  retentionMs: 7 * 24 * 60 * 60_000,
  /** Bytes of assets beyond which the oldest are removed. */
  assetBudgetBytes: 50 * 2 ** 30,
  sweepIntervalMs: 60_000,
};
