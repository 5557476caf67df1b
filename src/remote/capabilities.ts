/** The capabilities of an upstream before its first answer. */
export const UNKNOWN_CAPABILITIES = {
  /** How workflows name files: by `core/ASSET` objects, or by the path of the upload. */
  assetMode: 'unknown' as 'string' | 'object' | 'unknown',
  /** How the upstream takes labels: as a map, as one text, or not at all. */
  labels: 'unknown' as 'string' | 'map' | 'none' | 'unknown',
  /** `no`: `extra_data` may not hold the token of a logged-in caller. */
  authToken: 'unknown' as 'unknown' | 'no',
  /** `yes`: the upstream has `GET /jobs`. */
  listing: 'unknown' as 'unknown' | 'no' | 'yes',
  /**
   * `unsure`: the upstream does not know the route of the list, so it may not be one of the
   * contract, which promises to remember the keys of submissions.
   */
  keys: 'promised' as 'promised' | 'unsure',
  /** True when it has answered a cancel with success, and the job still waited. */
  ignoresCancel: false,
  /**
   * True when an output of a job had another id than before: the upstream was restarted and has
   * no state directory.
   */
  changesIds: false,
  /**
   * The number of uploads in a row that failed while they arrived, and were then accepted whole.
   */
  failedUploadStarts: 0,
  /** No event stream is opened before this time. */
  pollOnlyUntilMs: 0,
  /**
   * Says if the upstream is another Holdover with its own engine, which takes members that begin
   * with `x_`. Found by `GET /health`.
   */
  holdover: undefined as { isOne: boolean; untilMs: number } | undefined,
  /** How far the upstream's clock is ahead of this one. */
  clockAheadMs: 0,
};

/** The features of the upstream that are found from its answers to calls of clients. */
export type UpstreamCapabilities = typeof UNKNOWN_CAPABILITIES;
