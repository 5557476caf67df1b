import type { JobStatus } from '../../protocol/v2.ts';

/** Every time and bound of the remote client. */
export type RemoteLimits = {
  readonly connectTimeoutMs: number;
  /** A shorter one makes outcomes unknown that the answer would have shown. */
  readonly submitTimeoutMs: number;
  readonly readTimeoutMs: number;
  /** Silence in a body that is being read; a slow body that moves is left alone. */
  readonly bodyIdleTimeoutMs: number;
  /** Largest JSON answer. */
  readonly maxAnswerBytes: number;
  /** Most bytes that all JSON answers being read may hold together. */
  readonly maxAnswersBytes: number;
  /** Connections for calls; streams, uploads and downloads have their own. */
  readonly connections: number;

  /** How long one submission waits until the upstream takes it, `429` answers included. */
  readonly submitBudgetMs: number;
  /** Waits before a submission that never left is tried again. */
  readonly unsentRetryMs: readonly number[];
  /** Waits before a submission of unknown outcome is sent again under its key. */
  readonly unknownRetryMs: readonly number[];
  /** How long, and how often, the job list is searched for a job that may exist. */
  readonly recoverBudgetMs: number;
  readonly recoverEveryMs: number;
  /** Submissions of one account on their way at a time. */
  readonly submitsAtOnce: number;

  /** How long an upload waits while the account is paused. */
  readonly uploadBudgetMs: number;
  /** How long a read waits while the account is paused. */
  readonly readBudgetMs: number;
  readonly readRetryMs: number;
  readonly minRetryAfterMs: number;
  readonly maxRetryAfterMs: number;
  readonly defaultRetryAfterMs: number;
  /** After a refused credential no request is made for its jobs during this time. */
  readonly refusedPauseMs: number;
  /** A snapshot of a job answers every request within this time. */
  readonly snapshotMs: number;
  /** `expired` and `404` count when the answer after this time is the same. */
  readonly secondLookMs: number;

  /** Event streams in all; never more than six. */
  readonly maxStreams: number;
  readonly streamIdleTimeoutMs: number;
  /** How long a stream is read after a terminal status. */
  readonly afterTerminalMs: number;
  /** Largest single event. */
  readonly maxEventChars: number;
  /** How long a stream may be silent before the job is read; the interval doubles up to `last`. */
  readonly streamCheckMs: { readonly first: number; readonly last: number };
  /** The limit for all these reads of one upstream. */
  readonly streamChecks: { readonly perSecond: number; readonly burst: number };
  readonly reconnectMs: { readonly first: number; readonly last: number };
  /** A stream that lived so long was a good one: the next wait is short again. */
  readonly healthyStreamMs: number;
  /** An upstream without streams gets no new attempt during this time. */
  readonly pollOnlyMs: number;
  /** The same after an answer that may be a temporary page of a proxy. */
  readonly oddStreamMs: number;
  readonly pollMs: {
    readonly [pace in 'watched' | 'unwatched' | 'queued']: {
      readonly first: number;
      readonly last: number;
    };
  };
  readonly discoverTimeoutMs: number;
  readonly discoverAgainMs: number;
};

const MINUTE_MS = 60_000;

/** The numbers the official clients use, where they have one. */
export const DEFAULT_REMOTE_LIMITS: RemoteLimits = {
  connectTimeoutMs: 5_000,
  submitTimeoutMs: MINUTE_MS,
  readTimeoutMs: 15_000,
  bodyIdleTimeoutMs: MINUTE_MS,
  maxAnswerBytes: 64 * 1024 * 1024,
  maxAnswersBytes: 128 * 1024 * 1024,
  connections: 64,

  submitBudgetMs: MINUTE_MS,
  unsentRetryMs: [250, 1_000],
  unknownRetryMs: [1_000, 4_000],
  recoverBudgetMs: 10_000,
  recoverEveryMs: 1_000,
  submitsAtOnce: 16,

  uploadBudgetMs: MINUTE_MS,
  readBudgetMs: 10_000,
  readRetryMs: 100,
  minRetryAfterMs: 1_000,
  maxRetryAfterMs: MINUTE_MS,
  defaultRetryAfterMs: 2_000,
  refusedPauseMs: 30_000,
  snapshotMs: 1_000,
  secondLookMs: 500,

  maxStreams: 6,
  streamIdleTimeoutMs: 45_000,
  afterTerminalMs: 2_000,
  maxEventChars: 8 * 1024 * 1024,
  streamCheckMs: { first: 1_500, last: 15_000 },
  streamChecks: { perSecond: 2, burst: 6 },
  reconnectMs: { first: 250, last: 5_000 },
  healthyStreamMs: 10_000,
  pollOnlyMs: 10 * MINUTE_MS,
  oddStreamMs: MINUTE_MS,
  pollMs: {
    watched: { first: 1_000, last: 1_000 },
    unwatched: { first: 2_000, last: 5_000 },
    queued: { first: 2_000, last: 10_000 },
  },
  discoverTimeoutMs: 5_000,
  discoverAgainMs: 10 * MINUTE_MS,
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
