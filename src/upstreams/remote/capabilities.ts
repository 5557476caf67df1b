/** What an upstream turned out to be; discovered on the way, never asked for in advance. */
export type UpstreamCapabilities = {
  /** How workflows name files: as `core/ASSET` objects, or as the paths they were uploaded under. */
  assetMode: 'unknown' | 'object' | 'string';
  /** How labels are taken: as a map, as one text, or not at all. */
  labels: 'unknown' | 'map' | 'string' | 'none';
  /** Whether `extra_data` may hold the token of a caller who is logged in. */
  authToken: 'unknown' | 'no';
  /** Whether `GET /jobs` is there. */
  listing: 'unknown' | 'yes' | 'no';
  /** Whether bytes can be found by their hash. */
  hashLookup: 'unknown' | 'yes' | 'no';
  /** It has answered a cancel with success, and the job waited on. */
  ignoresCancel: boolean;
  /** Until when no event streams are tried. */
  pollOnlyUntilMs: number;
  /** Another Holdover with its own engine takes what it marks with `x_`. */
  holdover: { readonly isOne: boolean; readonly untilMs: number } | undefined;
  /** How far the upstream's clock is ahead of ours. */
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
    pollOnlyUntilMs: 0,
    holdover: undefined,
    clockAheadMs: 0,
  };
}
