import type { ClaimedAsset, KeyStore } from '../ledger.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

/** Single-use idempotency keys, of jobs and of assets. */
export function keyStore(db: Database, writer: Writer): KeyStore {
  const ofAsset = assetKeyLookup(db);
  const ofJobs = db.prepare('DELETE FROM keys WHERE claimed_at_ms < ?');
  const ofAssets = db.prepare('DELETE FROM asset_keys WHERE claimed_at_ms < ?');
  return {
    ofAsset: async (user, key) => ofAsset(user, key),
    expire: (beforeMs) =>
      writer.write(() => {
        ofJobs.run(beforeMs);
        ofAssets.run(beforeMs);
      }),
  };
}

/** Looks a key of an asset up. */
export function assetKeyLookup(
  db: Database,
): (user: string, key: string) => ClaimedAsset | undefined {
  const find = db.prepare(`SELECT asset_id AS assetId, fingerprint, created_new AS createdNew,
    claimed_at_ms AS claimedAtMs FROM asset_keys WHERE user = ? AND key = ?`);
  return (user, key) => {
    const found = find.get(user, key) as ClaimedAsset | undefined;
    return found && { ...found, createdNew: Boolean(found.createdNew) };
  };
}
