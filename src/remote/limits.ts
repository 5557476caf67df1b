import type { JobStatus } from '../protocol/v2.ts';

/** All time limits and other limits of the remote client. */
export type RemoteLimits = Readonly<typeof DEFAULT_REMOTE_LIMITS>;

const MINUTE_MS = 60_000;

/** The values of the official clients, where they have one. */
export const DEFAULT_REMOTE_LIMITS = {
  connectTimeoutMs: 5_000,
  /** With a shorter time, outcomes would be unknown that the answer would have shown. */
  submitTimeoutMs: MINUTE_MS,
  readTimeoutMs: 15_000,
  /**
   * The limit for silence in a body that is being read. A slow body that continues is not ended.
   */
  bodyIdleTimeoutMs: MINUTE_MS,
  /** The largest JSON answer. */
  maxAnswerBytes: 64 * 1024 * 1024,
  /** The limit for all JSON answers in memory that are being read. */
  maxAnswersBytes: 128 * 1024 * 1024,
  /** The number of connections for calls. Streams, uploads and downloads have their own. */
  connections: 64,

  /** The number of submissions of one account in progress at a time. */
  submitsAtOnce: 16,

  /** How long an upload waits while the account is paused. */
  uploadBudgetMs: MINUTE_MS,
  /** How long a read waits while the account is paused. */
  readBudgetMs: 10_000,
  readRetryMs: 100,
  minRetryAfterMs: 1_000,
  maxRetryAfterMs: MINUTE_MS,
  defaultRetryAfterMs: 2_000,
  /**
   * How long the jobs of an account are neither read nor followed after its credential was refused.
   */
  refusedPauseMs: 30_000,
  /** How long a snapshot of a job answers every request. */
  snapshotMs: 1_000,
  /** `expired` and `404` count when the answer after this time is the same. */
  confirmAfterMs: 500,

  /** The contract allows more event streams in places; every known server accepts six. */
  maxStreams: 6,
  /** A stream counts as broken after this time without a complete event or comment. */
  streamIdleTimeoutMs: 45_000,
  /** How long a stream is read after a terminal status. */
  afterTerminalMs: 2_000,
  /** The largest single event. */
  maxEventChars: 8 * 1024 * 1024,
  /**
   * How long a stream may be silent before the job is read: after its first events, and later. The
   * interval doubles up to `last`.
   */
  streamCheckMs: { opening: 200, first: 1_500, last: 15_000 },
  reconnectMs: { first: 250, last: 5_000 },
  /** After a stream that lasted this long, the next wait is short again. */
  longStreamMs: 10_000,
  /** How long no stream is tried at an upstream without streams. */
  pollOnlyMs: 10 * MINUTE_MS,
  /** How long no stream is tried after an answer that may be a temporary page of a proxy. */
  uncertainStreamMs: MINUTE_MS,
  /** How long a job that a client watches is not read again after a read that failed. */
  failedReadMs: 1_000,
  /**
   * The limit for all reads that following jobs causes at one upstream. The read after a reported
   * end does not count.
   */
  readsPerSecond: 10,
  pollMs: {
    watched: { first: 1_000, last: 1_000 },
    unwatched: { first: 2_000, last: 5_000 },
    queued: { first: 2_000, last: 10_000 },
  },
  discoverTimeoutMs: 5_000,
  discoverAgainMs: 10 * MINUTE_MS,
  discoverRetryMs: 10_000,
};

const POLL_GROWTH = 1.5;

/** Returns the wait before a job in this state is read again, without jitter. */
export function pollDelayMs(
  limits: RemoteLimits,
  job: { readonly status: JobStatus; readonly isWatched: boolean; readonly polls: number },
): number {
  const running = job.isWatched ? 'watched' : 'unwatched';
  const { first, last } = limits.pollMs[job.status === 'queued' ? 'queued' : running];
  return Math.min(last, first * POLL_GROWTH ** Math.min(job.polls, 20));
}
