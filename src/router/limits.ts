/** Limits of the embedded model router. */
export type ModelLimits = Readonly<typeof DEFAULT_MODEL_LIMITS>;

const MEBIBYTE = 2 ** 20;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The times are those of the contract; the amounts suit a laptop. */
export const DEFAULT_MODEL_LIMITS = {
  /** The calls of one workspace that may run at the same time. */
  inFlight: 8,
  /** The upper bound for the prices of one workspace's running calls together, in US cents. */
  committedCents: 1000,
  /** The requests of one credential in a rolling minute, over all routes. */
  requestsPerMinute: 600,
  /** How long a call may take before it is answered `deadline_exceeded`. */
  deadlineMs: 10 * MINUTE_MS,
  /** How long an answer is replayed to the same `Idempotency-Key`. */
  replayMs: DAY_MS,
  /** A larger answer is not stored for replay. */
  replayBytes: 4 * MEBIBYTE,
  /** Above this total no further answer is stored for replay. */
  replayBudgetBytes: 1024 * MEBIBYTE,
  maxInputBytes: 16 * MEBIBYTE,
  /** The worker threads, and the calls that may wait for one. */
  threads: 1,
  maxWaiting: 64,
  /** How long audit records of calls without cost are stored. */
  auditMs: 30 * DAY_MS,
  sweepIntervalMs: 10 * MINUTE_MS,
};
