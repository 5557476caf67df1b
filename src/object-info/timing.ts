/**
 * What somebody wants: to use definitions now, to show them, to show them after asking the source
 * once more, or only what is there already.
 */
export type Need = 'use' | 'show' | 'refresh' | 'stored';

export type Timing = {
  /** A version is not asked about again for so long. */
  readonly freshMs: number;
  /** The same when somebody demands it. */
  readonly demandMs: number;
  /** A source that has none is not asked again for so long. */
  readonly noneMs: number;
  /** How long somebody who could be served waits for the source to be asked. */
  readonly patienceMs: { readonly [need in Need]: number };
};

/** A remote source is asked in the background. */
export const REMOTE_TIMING: Timing = {
  freshMs: 60_000,
  demandMs: 5_000,
  noneMs: 60_000,
  patienceMs: { use: 0, show: 0, refresh: 10_000, stored: 0 },
};

/** A look at a file costs nothing. */
export const FILE_TIMING: Timing = {
  freshMs: 0,
  demandMs: 0,
  noneMs: 5_000,
  patienceMs: { use: 1_000, show: 5_000, refresh: 5_000, stored: 0 },
};

/** How long those wait for whom there is nothing. */
export const EMPTY_PATIENCE_MS: { readonly [need in Need]: number } = {
  use: 3_000,
  show: 60_000,
  refresh: 60_000,
  stored: 0,
};

/** A version nobody confirmed for longer is not shown any more. */
export const STALE_MS = 24 * 60 * 60_000;

/** What a restart left is better confirmed before it is shown. */
export const UNCONFIRMED_PATIENCE_MS = 2_000;
