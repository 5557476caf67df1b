import type { JobStatus } from '../../protocol/v2.ts';

/** Every time and bound of the remote client. */
export type RemoteLimits = Readonly<typeof DEFAULT_REMOTE_LIMITS>;

const MINUTE_MS = 60_000;
/** Event streams in all. The contract allows more in places; no known server refuses six. */
export const MAX_STREAMS = 6;

/** The numbers the official clients use, where they have one. */
export const DEFAULT_REMOTE_LIMITS = {
  connectTimeoutMs: 5_000,
  /** A shorter one makes outcomes unknown that the answer would have shown. */
  submitTimeoutMs: MINUTE_MS,
  readTimeoutMs: 15_000,
  /** Silence in a body that is being read; a slow body that moves is left alone. */
  bodyIdleTimeoutMs: MINUTE_MS,
  /** Largest JSON answer. */
  maxAnswerBytes: 64 * 1024 * 1024,
  /** Most bytes that all JSON answers being read may hold together. */
  maxAnswersBytes: 128 * 1024 * 1024,
  /** Connections for calls; streams, uploads and downloads have their own. */
  connections: 64,

  /** How long one submission waits until the upstream takes it, `429` answers included. */
  submitBudgetMs: MINUTE_MS,
  /** Waits before a submission that never left is tried again. */
  unsentRetryMs: [250, 1_000],
  /** Waits before a submission of unknown outcome is sent again under its key. */
  unknownRetryMs: [1_000, 4_000],
  /** How long, and how often, the job list is searched for a job that may exist. */
  recoverBudgetMs: 10_000,
  recoverEveryMs: 1_000,
  /** Submissions of one account on their way at a time. */
  submitsAtOnce: 16,

  /** How long an upload waits while the account is paused. */
  uploadBudgetMs: MINUTE_MS,
  /** How long a read waits while the account is paused. */
  readBudgetMs: 10_000,
  readRetryMs: 100,
  minRetryAfterMs: 1_000,
  maxRetryAfterMs: MINUTE_MS,
  defaultRetryAfterMs: 2_000,
  /** After a refused credential its jobs are neither read nor followed during this time. */
  refusedPauseMs: 30_000,
  /** A snapshot of a job answers every request within this time. */
  snapshotMs: 1_000,
  /** `expired` and `404` count when the answer after this time is the same. */
  secondLookMs: 500,

  maxStreams: MAX_STREAMS,
  streamIdleTimeoutMs: 45_000,
  /** How long a stream is read after a terminal status. */
  afterTerminalMs: 2_000,
  /** Largest single event. */
  maxEventChars: 8 * 1024 * 1024,
  /** How long a stream may be silent before the job is read; the interval doubles up to `last`. */
  streamCheckMs: { first: 1_500, last: 15_000 },
  /** The limit for all these reads of one upstream. */
  streamChecks: { perSecond: 2, burst: 6 },
  reconnectMs: { first: 250, last: 5_000 },
  /** A stream that lived so long was a good one: the next wait is short again. */
  healthyStreamMs: 10_000,
  /** An upstream without streams gets no new attempt during this time. */
  pollOnlyMs: 10 * MINUTE_MS,
  /** The same after an answer that may be a temporary page of a proxy. */
  oddStreamMs: MINUTE_MS,
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

/** How long to wait before a job in this state is read again, without jitter. */
export function pollDelayMs(
  limits: Pick<RemoteLimits, 'pollMs'>,
  job: { readonly status: JobStatus; readonly isWatched: boolean; readonly polls: number },
): number {
  const running = job.isWatched ? 'watched' : 'unwatched';
  const { first, last } = limits.pollMs[job.status === 'queued' ? 'queued' : running];
  return Math.min(last, first * POLL_GROWTH ** Math.min(job.polls, 20));
}

/** A fifth more or less: many waiters must not come back in step. */
export function jittered(ms: number): number {
  return ms * (0.8 + Math.random() * 0.4);
}
