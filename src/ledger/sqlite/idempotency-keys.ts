import { CLAIMED_ASSET_COLUMNS } from '../columns.ts';
import type { ClaimedAsset, KeyStore } from '../ledger.ts';
import { sqlColumns } from './sql-columns.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

const SQL = sqlColumns<ClaimedAsset>(CLAIMED_ASSET_COLUMNS);

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
  const find = db.prepare(`SELECT ${SQL.select()} FROM asset_keys WHERE user = ? AND key = ?`);
  return (user, key) => SQL.row(find.get(user, key));
}
