/** A single-use key for one new asset, and which request it came with. */
export type AssetClaim = {
  readonly key: string;
  /** Equal when the same request is sent again. */
  readonly fingerprint: string;
  /** True when the answer says that the bytes were new. */
  readonly createdNew: boolean;
};

/** The first request that came with a key, and the asset it made. */
export type ClaimedAsset = Pick<AssetClaim, 'fingerprint' | 'createdNew'> & {
  readonly assetId: string;
  readonly claimedAtMs: number;
};

/** Single-use idempotency keys. */
export interface KeyStore {
  /** Of assets; the keys of jobs are apart from them. */
  ofAsset(user: string, key: string): Promise<ClaimedAsset | undefined>;
  /** Of jobs and assets. */
  expire(claimedBeforeMs: number): Promise<void>;
}
