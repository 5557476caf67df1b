import { SqlColumns } from './sql-columns.ts';
import type { AssetRow, AssetStore, KeyStore } from '../ledger.ts';
import type { FileLists } from './files.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

const SQL = new SqlColumns('assets');
const COLUMNS = SQL.select();
const KEYS = new SqlColumns('assetKeys');

/** The asset records of the embedded engine; the bytes are files of their own. */
export function assetStore(db: Database, writer: Writer, lists: FileLists): AssetStore {
  const sql = statements(db);
  const row = (found: unknown) => found as AssetRow | undefined;
  const rows = (found: unknown[]) => found as AssetRow[];
  return {
    insert: (asset, key, durability) =>
      writer.write(() => {
        const { user, createdAtMs: claimedAtMs } = asset;
        const isFree =
          key === undefined ||
          sql.claim.run(...KEYS.values({ user, key, claimedAtMs })).changes === 1;
        if (isFree) sql.insert.run(...SQL.values(asset));
        return isFree;
      }, durability),
    get: async (id) => row(sql.get.get(id)),
    byHash: async (user, hash) => row(sql.byHash.get(hash, user)),
    byFilePath: async (user, filePath) => row(sql.byPath.get(user, filePath)),
    ofJob: async (jobId) => rows(sql.ofJob.all(jobId)),
    // The second text comes after all that start with the prefix, so that the index is searched.
    outputPaths: async (user, prefix) =>
      (sql.paths.all(user, prefix, `${prefix}\u{10ffff}`) as { filePath: string }[]).map(
        (r) => r.filePath,
      ),
    expiredBy: async (nowMs) => rows(sql.expired.all(nowMs)),
    oldest: async (limit) => rows(sql.oldest.all(limit)),
    remove(id) {
      lists.clear();
      return writer.write(() => {
        sql.removeInputNames.run({ id });
        sql.clearOutputNames.run({ id });
        sql.remove.run(id);
      });
    },
    countByHash: async (hash) => (sql.count.get(hash) as { n: number }).n,
    totalBytes: async () => (sql.total.get() as { n: number }).n,
  };
}

function statements(db: Database) {
  const named = 'user = (SELECT user FROM assets WHERE id = :id) AND asset_id = :id';
  return {
    insert: db.prepare(`INSERT INTO assets ${SQL.insert}`),
    claim: db.prepare(`INSERT OR IGNORE INTO asset_keys ${KEYS.insert}`),
    get: db.prepare(`SELECT ${COLUMNS} FROM assets WHERE id = ?`),
    byHash: db.prepare(`SELECT ${COLUMNS} FROM assets WHERE hash = ? AND user = ? LIMIT 1`),
    byPath: db.prepare(`SELECT ${COLUMNS} FROM assets WHERE user = ? AND file_path = ?
      ORDER BY rowid DESC LIMIT 1`),
    ofJob: db.prepare(`SELECT ${COLUMNS} FROM assets WHERE job_id = ? ORDER BY rowid`),
    paths: db.prepare(`SELECT file_path AS filePath FROM assets WHERE user = ?
      AND file_path >= ? AND file_path < ? AND job_id IS NOT NULL`),
    expired: db.prepare(`SELECT ${COLUMNS} FROM assets WHERE expires_at_ms <= ?`),
    oldest: db.prepare(`SELECT ${COLUMNS} FROM assets ORDER BY created_at_ms, rowid LIMIT ?`),
    remove: db.prepare('DELETE FROM assets WHERE id = ?'),
    removeInputNames: db.prepare(`DELETE FROM files WHERE ${named} AND type <> 'output'`),
    // The name stays reserved: history shows it, so it must never refer to another picture.
    clearOutputNames: db.prepare(`UPDATE files SET asset_id = '' WHERE ${named}`),
    count: db.prepare('SELECT count(*) AS n FROM assets WHERE hash = ?'),
    total: db.prepare(`SELECT coalesce(sum(size), 0) AS n FROM
      (SELECT max(size_bytes) AS size FROM assets GROUP BY hash)`),
  };
}

/** Single-use idempotency keys, of jobs and of assets. */
export function keyStore(db: Database, writer: Writer): KeyStore {
  const into = (table: string) => db.prepare(`INSERT INTO ${table} ${KEYS.insert}`);
  const inserts = { jobKeys: into('keys'), assetKeys: into('asset_keys') };
  const ofJobs = db.prepare('DELETE FROM keys WHERE claimed_at_ms < ?');
  const ofAssets = db.prepare('DELETE FROM asset_keys WHERE claimed_at_ms < ?');
  return {
    put: (kind, row) => writer.write(() => void inserts[kind].run(...KEYS.values(row))),
    expire: (beforeMs) =>
      writer.write(() => {
        ofJobs.run(beforeMs);
        ofAssets.run(beforeMs);
      }),
  };
}
