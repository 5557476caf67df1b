/** The limits of the embedded engine. */
export type EngineLimits = {
  /** Jobs that run at the same time. */
  readonly concurrency: number;
  /** Jobs that may wait; more are refused with `queue_full`. */
  readonly maxQueued: number;
  readonly jobTimeMs: number;
  readonly jobMemoryBytes: number;
  /** How long a job may take to react to a stop before its worker thread is terminated. */
  readonly stopGraceMs: number;
  /** Bytes of pixels and texts that each worker caches of its users' previous prompts. */
  readonly cacheBytes: number;
  /** How long a finished job and its outputs are retained. */
  readonly retentionMs: number;
  /** Bytes of assets beyond which the oldest are removed. */
  readonly assetBudgetBytes: number;
  readonly sweepIntervalMs: number;
};

/** Modest enough for a laptop; v1 runs one job at a time too. */
export const DEFAULT_LIMITS: EngineLimits = {
  concurrency: 1,
  maxQueued: 1000,
  jobTimeMs: 30 * 60_000,
  jobMemoryBytes: 4 * 2 ** 30,
  stopGraceMs: 10_000,
  cacheBytes: 2 ** 30,
  retentionMs: 7 * 24 * 60 * 60_000,
  assetBudgetBytes: 50 * 2 ** 30,
  sweepIntervalMs: 60_000,
};
