/** Features that the upstream supports, discovered from its answers to calls of clients. */
export type UpstreamCapabilities = ReturnType<typeof unknownCapabilities>;

export function unknownCapabilities() {
  return {
    /** How workflows name files: as `core/ASSET` objects, or by the path of the upload. */
    assetMode: 'unknown' as 'unknown' | 'object' | 'string',
    /** How the upstream takes labels: as a map, as one text, or not at all. */
    labels: 'unknown' as 'unknown' | 'map' | 'string' | 'none',
    /** `no`: `extra_data` may not hold the token of a logged-in caller. */
    authToken: 'unknown' as 'unknown' | 'no',
    /** The upstream has `GET /jobs`. */
    listing: 'unknown' as 'unknown' | 'yes' | 'no',
    /** The upstream finds bytes by their hash. */
    hashLookup: 'unknown' as 'unknown' | 'yes' | 'no',
    /** It has answered a cancel with success, and the job waited on. */
    ignoresCancel: false,
    /** An output of a job had another id than before: the upstream was restarted, and has no state directory. */
    changesIds: false,
    /** Uploads in a row that failed while they arrived, and were then accepted whole. */
    failedUploadStarts: 0,
    /** No event stream is opened before this time. */
    pollOnlyUntilMs: 0,
    /** Another Holdover with its own engine takes what it marks with `x_`; asked by `GET /health`. */
    holdover: undefined as { readonly isOne: boolean; readonly untilMs: number } | undefined,
    /** How far the upstream's clock is ahead of this one. */
    clockAheadMs: 0,
  };
}
