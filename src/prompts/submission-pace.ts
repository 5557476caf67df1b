/** All waits of submissions that do not succeed at once. */
export const DEFAULT_PACE = {
  /**
   * The bounds of the upstream's `Retry-After`, and the wait without that header. A service is not
   * called sooner than `remote/limits.ts` says, too.
   */
  retryAfterMs: { least: 1000, most: 60_000, unstated: 2000 },
  /** The waits between attempts at an upstream that cannot be reached. */
  notSentMs: { first: 1000, last: 30_000 },
  /** The waits between searches for a job that may exist. */
  searchMs: { first: 2000, last: 30_000 },
  /** A job that no search finds for this long is lost. */
  searchWindowMs: 10 * 60_000,
  /** A job that the service's complete list lacks for this long was not made. */
  absentMs: 2000,
  /** A request without an answer may be in progress at the service for this long. */
  inFlightMs: 60_000,
  /** While the client of a prompt waits for its answer. */
  answering: {
    /** The waits before a plan that was not sent is sent again. */
    notSentMs: [250, 1000],
    /** The waits before the searches after an attempt of unknown outcome; then it is sent again. */
    unknownMs: [1000, 4000],
    /** The wait between the searches after these attempts. */
    searchMs: 1000,
    /** How long after the first attempt of unknown outcome the client gets an answer. */
    limitMs: 15_000,
  },
};

export type SubmissionPace = Readonly<typeof DEFAULT_PACE>;

/** Returns the wait after so many failures in a row, before jitter: twice as long each time. */
export function backoffMs({ notSentMs }: SubmissionPace, failures: number): number {
  return Math.min(notSentMs.last, notSentMs.first * 2 ** Math.min(failures, 10));
}
