import { createHash } from 'node:crypto';
import type { AssetClaim, AssetRow, ClaimedAsset } from '../../ledger/ledger.ts';
import { type AssetUpload, type Result, ok, refuse } from '../../protocol/job-api.ts';
import type { Asset } from '../../protocol/v2.ts';
import { showAsset } from '../job-links.ts';

/** A claim on a key. The answer is not known yet. */
export type KeyedRequest = Omit<AssetClaim, 'createdNew'>;

/**
 * Returns the idempotency key of a request for an asset, with a fingerprint of everything that
 * distinguishes the request: the operation, the bytes and the record. `undefined`: the request has
 * no key.
 */
export function keyedRequest(
  operation: 'upload' | 'from-hash',
  hash: string,
  { idempotencyKey: key, contentType, filePath, tags, expiresInSeconds }: Partial<AssetUpload>,
): KeyedRequest | undefined {
  if (key === undefined) return undefined;
  const parts = [operation, hash, contentType, filePath, tags, expiresInSeconds];
  const fingerprint = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  return { key, fingerprint };
}

/**
 * A retry within this time after the first answer gets the same links. A later one gets new links.
 */
const SAME_LINKS_WITHIN_MS = 15 * 60 * 1000;

/**
 * Answers a request whose key was used before: repeats the first answer. A different request is
 * refused, and so is one whose asset is gone.
 */
export function repeatAnswer(
  { fingerprint }: KeyedRequest,
  first: ClaimedAsset,
  row: AssetRow | undefined,
  nowMs: number,
): Result<Asset> {
  if (first.fingerprint !== fingerprint) return refuseReusedKey(DIFFERENT_REQUEST);
  if (!row) return refuseReusedKey(ASSET_GONE);
  const isRecent = nowMs - first.claimedAtMs < SAME_LINKS_WITHIN_MS;
  const shown = showAsset(row, isRecent ? first.claimedAtMs : nowMs);
  return ok({ ...shown, created_new: first.createdNew });
}

const DIFFERENT_REQUEST = 'This Idempotency-Key was sent with a different request: use a new one.';
const ASSET_GONE = 'The asset that this Idempotency-Key made is gone: use a new one.';

function refuseReusedKey(message: string): Result<never> {
  return refuse(422, 'idempotency_key_reuse', message);
}
