/**
 * The need of a request: `use` definitions now, `show` them, show them after a `refresh`, or only
 * show the `stored` copy.
 */
export type Need = 'use' | 'show' | 'refresh' | 'stored';

export type Timing = {
  /** A version is not fetched again during this time. */
  readonly freshMs: number;
  /** The same for a refresh. */
  readonly refreshMs: number;
  /** A source without definitions is not asked again during this time. */
  readonly absentMs: number;
  /** How long a request that could be served waits for the source. */
  readonly maxWaitMs: { readonly [need in Need]: number };
};

/** A remote source is asked in the background. */
export const REMOTE_TIMING: Timing = {
  freshMs: 60_000,
  refreshMs: 5_000,
  absentMs: 60_000,
  maxWaitMs: { use: 0, show: 0, refresh: 10_000, stored: 0 },
};

/** Checking a file is cheap. */
export const FILE_TIMING: Timing = {
  freshMs: 0,
  refreshMs: 0,
  absentMs: 5_000,
  maxWaitMs: { use: 1_000, show: 5_000, refresh: 5_000, stored: 0 },
};

/** How long requests wait while there are no definitions. */
export const EMPTY_MAX_WAIT_MS: { readonly [need in Need]: number } = {
  use: 3_000,
  show: 60_000,
  refresh: 60_000,
  stored: 0,
};

/** A version that was not confirmed for longer is not shown any more. */
export const MAX_AGE_MS = 24 * 60 * 60_000;

/** A version from before a restart is confirmed first, if that takes no longer than this. */
export const UNCONFIRMED_MAX_WAIT_MS = 2_000;
