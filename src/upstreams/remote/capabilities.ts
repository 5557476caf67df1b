/** Features that the upstream supports, discovered from its answers to calls of clients. */
export type UpstreamCapabilities = {
  /** How workflows name files: as `core/ASSET` objects, or by the path of the upload. */
  assetMode: 'unknown' | 'object' | 'string';
  /** How the upstream takes labels: as a map, as one text, or not at all. */
  labels: 'unknown' | 'map' | 'string' | 'none';
  /** `no`: `extra_data` may not hold the token of a logged-in caller. */
  authToken: 'unknown' | 'no';
  /** The upstream has `GET /jobs`. */
  listing: 'unknown' | 'yes' | 'no';
  /** The upstream finds bytes by their hash. */
  hashLookup: 'unknown' | 'yes' | 'no';
  /** It has answered a cancel with success, and the job waited on. */
  ignoresCancel: boolean;
  /** An output of a job had another id than before: the upstream was restarted, and has no state directory. */
  changesIds: boolean;
  /** Uploads in a row that failed while they arrived, and were then accepted whole. */
  failedUploadStarts: number;
  /** No event stream is opened before this time. */
  pollOnlyUntilMs: number;
  /** Another Holdover with its own engine takes what it marks with `x_`; asked by `GET /health`. */
  holdover: { readonly isOne: boolean; readonly untilMs: number } | undefined;
  /** How far the upstream's clock is ahead of this one. */
  clockAheadMs: number;
};

export function unknownCapabilities(): UpstreamCapabilities {
  return {
    assetMode: 'unknown',
    labels: 'unknown',
    authToken: 'unknown',
    listing: 'unknown',
    hashLookup: 'unknown',
    ignoresCancel: false,
    changesIds: false,
    failedUploadStarts: 0,
    pollOnlyUntilMs: 0,
    holdover: undefined,
    clockAheadMs: 0,
  };
}
