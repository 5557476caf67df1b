import { SqlColumns } from './sql-columns.ts';
import type { Durability } from '../../lib/durability.ts';
import type { FileRow, FileStore, FileType, LabelStore } from '../ledger.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';
import { LRUCache } from 'lru-cache';

const SQL = new SqlColumns('files');
const COLUMNS = SQL.select();

/** v1 file names and the assets behind them. */
export function fileStore(db: Database, writer: Writer, lists: FileLists): FileStore {
  const named = `user = ? AND type = ? AND subfolder = ? AND filename = ?`;
  const put = db.prepare(`INSERT OR REPLACE INTO files ${SQL.insert}`);
  const claim = db.prepare(`INSERT OR IGNORE INTO files ${SQL.insert}`);
  const get = db.prepare(`SELECT ${COLUMNS} FROM files WHERE ${named}`);
  const byAsset = db.prepare(`SELECT ${COLUMNS} FROM files WHERE user = ? AND asset_id = ?
    ORDER BY rowid LIMIT 1`);
  const list = db.prepare(`SELECT ${COLUMNS} FROM files WHERE user = ? AND type = ?
    AND asset_id <> '' ORDER BY modified_at_ms DESC, rowid DESC`);
  const remove = db.prepare(`DELETE FROM files WHERE ${named}`);
  const write = <T>(apply: () => T, of: ListKey, durability?: Durability): Promise<T> => {
    lists.delete(keyOf(of));
    return writer.write(apply, durability);
  };
  return {
    put: (row, durability) => write(() => void put.run(...SQL.values(row)), row, durability),
    claim: (row, durability) =>
      write(() => claim.run(...SQL.values(row)).changes === 1, row, durability),
    get: async (user, { type, subfolder, filename }) =>
      get.get(user, type, subfolder, filename) as FileRow | undefined,
    byAsset: async (user, assetId) => byAsset.get(user, assetId) as FileRow | undefined,
    async list(user, type) {
      const key = keyOf({ user, type });
      const rows = lists.get(key) ?? (list.all(user, type) as unknown as FileRow[]);
      lists.set(key, rows);
      return rows;
    },
    remove: (user, { type, subfolder, filename }) =>
      write(() => void remove.run(user, type, subfolder, filename), { user, type }),
  };
}

/** The texts of users: a table with one row for each setting of a front end, or each labelled file. */
export function textStore(
  db: Database,
  writer: Writer,
  table: 'settings' | 'asset_labels',
): LabelStore {
  const all = db.prepare(`SELECT id, value_json AS valueJson FROM ${table} WHERE user = ?`);
  const put = db.prepare(`INSERT OR REPLACE INTO ${table} (user, id, value_json) VALUES (?, ?, ?)`);
  const remove = db.prepare(`DELETE FROM ${table} WHERE user = ? AND id = ?`);
  return {
    async all(user) {
      const rows = all.all(user) as { id: string; valueJson: string }[];
      return Object.fromEntries(rows.map(({ id, valueJson }) => [id, valueJson]));
    },
    merge: (user, texts) =>
      writer.write(() => Object.entries(texts).forEach(([id, json]) => put.run(user, id, json))),
    remove: (user, id) => writer.write(() => void remove.run(user, id)),
  };
}

type ListKey = { readonly user: string; readonly type: FileType };

/** The most files in all cached lists together. */
const MAX_CACHED_FILES = 100_000;

export type FileLists = LRUCache<string, readonly FileRow[]>;

/**
 * Caches lists of files by user and type, because every request for the node definitions reads one and files change
 * rarely. A change removes its list. No other process writes to the database.
 */
export function createFileLists(writer: Writer): FileLists {
  const lists: FileLists = new LRUCache({
    maxSize: MAX_CACHED_FILES,
    sizeCalculation: (rows) => rows.length + 1,
  });
  writer.onFailure(() => lists.clear());
  return lists;
}

function keyOf({ user, type }: ListKey): string {
  return `${type} ${user}`;
}
