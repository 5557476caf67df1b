/** Limits of the embedded model router. */
export type ModelLimits = {
  /** Calls of one workspace that may run at the same time. */
  readonly inFlight: number;
  /** Ceiling on the prices of one workspace's running calls, in US cents. */
  readonly committedCents: number;
  /** Requests of one credential in a rolling minute, over all routes. */
  readonly requestsPerMinute: number;
  /** How long a call may take before it is answered `deadline_exceeded`. */
  readonly deadlineMs: number;
  /** How long an answer is replayed to the same `Idempotency-Key`. */
  readonly replayMs: number;
  /** A larger answer is not stored for replay. */
  readonly replayBytes: number;
  /** Above this sum no further answer is stored for replay. */
  readonly replayBudgetBytes: number;
  readonly maxInputBytes: number;
  /** Inputs of all callers held in memory at a time. */
  readonly inputBudgetBytes: number;
  /** Worker threads, and the calls that may wait for one. */
  readonly threads: number;
  readonly maxWaiting: number;
  /** How long audit records of calls without cost are stored. */
  readonly auditMs: number;
  readonly sweepIntervalMs: number;
};

const MEBIBYTE = 2 ** 20;
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The times are the contract's; the amounts fit a laptop. */
export const DEFAULT_MODEL_LIMITS: ModelLimits = {
  inFlight: 8,
  committedCents: 1000,
  requestsPerMinute: 600,
  deadlineMs: 10 * MINUTE_MS,
  replayMs: DAY_MS,
  replayBytes: 4 * MEBIBYTE,
  replayBudgetBytes: 1024 * MEBIBYTE,
  maxInputBytes: 16 * MEBIBYTE,
  inputBudgetBytes: 256 * MEBIBYTE,
  threads: 1,
  maxWaiting: 64,
  auditMs: 30 * DAY_MS,
  sweepIntervalMs: 10 * MINUTE_MS,
};
