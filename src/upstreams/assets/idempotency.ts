import { createHash } from 'node:crypto';
import type { AssetClaim, AssetRow, ClaimedAsset } from '../../ledger/ledger.ts';
import { type AssetUpload, type Result, ok, refuse } from '../../protocol/job-api.ts';
import type { Asset } from '../../protocol/v2.ts';

type AssetRequest = Pick<
  AssetUpload,
  'contentType' | 'filePath' | 'tags' | 'expiresInSeconds' | 'idempotencyKey'
>;

/** A claim without the answer, which is not known yet. */
export type KeyedRequest = Omit<AssetClaim, 'createdNew'>;

/**
 * The key of a request for an asset, with all that tells it from another one: the operation, the
 * bytes and the record they get. `undefined`: it has no key.
 */
export function keyedRequest(
  operation: 'upload' | 'from-hash',
  hash: string,
  { idempotencyKey: key, contentType, filePath, tags, expiresInSeconds }: Partial<AssetRequest>,
): KeyedRequest | undefined {
  if (key === undefined) return undefined;
  const parts = [operation, hash, contentType, filePath, tags, expiresInSeconds];
  const fingerprint = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  return { key, fingerprint };
}

/** How long after the first answer a retry gets its very links; later it gets fresh ones. */
const SAME_LINKS_WITHIN_MS = 15 * 60 * 1000;

/** Answers a request whose key another one had first: the same again, or a refusal. */
export function repeatAnswer(
  { fingerprint }: KeyedRequest,
  first: ClaimedAsset,
  known: {
    readonly row: AssetRow | undefined;
    readonly show: (row: AssetRow, nowMs: number) => Asset;
    readonly nowMs: number;
  },
): Result<Asset> {
  if (first.fingerprint !== fingerprint) {
    return refuseReusedKey(
      'This Idempotency-Key was sent with a different request: use a new one.',
    );
  }
  if (!known.row) {
    return refuseReusedKey('The asset that this Idempotency-Key made is gone: use a new one.');
  }
  const { claimedAtMs, createdNew } = first;
  const isRecent = known.nowMs - claimedAtMs < SAME_LINKS_WITHIN_MS;
  const shown = known.show(known.row, isRecent ? claimedAtMs : known.nowMs);
  return ok({ ...shown, created_new: createdNew });
}

function refuseReusedKey(message: string): Result<never> {
  return refuse(422, 'idempotency_key_reuse', message);
}
