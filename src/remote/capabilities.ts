/** The features of the upstream that are found from its answers to calls of clients. */
export interface UpstreamCapabilities {
  /** How workflows name files: by `core/ASSET` objects, or by the path of the upload. */
  assetMode: 'string' | 'object' | 'unknown';
  /** How the upstream takes labels: as a map, as one text, or not at all. */
  labels: 'string' | 'map' | 'none' | 'unknown';
  /** `no`: `extra_data` may not hold the token of a logged-in caller. */
  authToken: 'unknown' | 'no';
  /** `yes`: the upstream has `GET /jobs`. */
  listing: 'unknown' | 'no' | 'yes';
  /**
   * `unsure`: the upstream does not know the route of the list, so it may not be one of the
   * contract, which promises to remember the keys of submissions.
   */
  keys: 'promised' | 'unsure';
  /** True when it has answered a cancel with success, and the job still waited. */
  ignoresCancel: boolean;
  /**
   * True when an output of a job had another id than before: the upstream was restarted and has
   * no state directory.
   */
  changesIds: boolean;
  /**
   * The number of uploads in a row that failed while they arrived, and were then accepted whole.
   */
  failedUploadStarts: number;
  /** No event stream is opened before this time. */
  pollOnlyUntilMs: number;
  /**
   * Says if the upstream is another Holdover with its own engine, which takes members that begin
   * with `x_`. Found by `GET /health`.
   */
  holdover: { isOne: boolean; untilMs: number } | undefined;
  /** How far the upstream's clock is ahead of this one. */
  clockAheadMs: number;
}

export function unknownCapabilities(): UpstreamCapabilities {
  return {
    assetMode: 'unknown',
    labels: 'unknown',
    authToken: 'unknown',
    listing: 'unknown',
    keys: 'promised',
    ignoresCancel: false,
    changesIds: false,
    failedUploadStarts: 0,
    pollOnlyUntilMs: 0,
    holdover: undefined,
    clockAheadMs: 0,
  };
}
