import { FILE_COLUMNS } from '../columns.ts';
import { sqlColumns } from './sql-columns.ts';
import { statSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import type { AssetRow, FileRow } from '../ledger.ts';
import { isDamage } from './sqlite-ledger.ts';
import type { Database } from './database.ts';

/** Bytes that at least one asset record names. Each hash is listed once. */
export type RecordedBlob = { readonly hash: string; readonly sizeBytes: number };

/** `empty`: a database without tables; for SQLite an empty file is one. */
export type DatabaseState = 'ok' | 'absent' | 'empty' | 'damaged';

/** A name that records have for some bytes: a v1 file name, or the outputs of a job. */
export type RememberedName =
  | { readonly kind: 'file'; readonly row: FileRow }
  | { readonly kind: 'output'; readonly user: string; readonly outputsJson: string };

const MAX_ERRORS = 100;
const BUSY_TIMEOUT_MS = 10_000;

/** Checks the whole database, to which another process may write meanwhile. Throws an error that is not damage. */
export function inspectDatabase(path: string): {
  readonly state: DatabaseState;
  readonly errors: readonly string[];
} {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    return { state: 'absent', errors: [`there is no database ${path}`] };
  }
  try {
    return withDatabase(path, (db) => {
      const found = db.prepare(`PRAGMA integrity_check(${MAX_ERRORS})`).all();
      const errors = (found as { integrity_check: string }[])
        .map((row) => row.integrity_check)
        .filter((text) => text !== 'ok');
      if (errors.length > 0) return { state: 'damaged', errors };
      if (!hasTable(db, 'assets')) return { state: 'empty', errors: ['it has no tables'] };
      return { state: 'ok', errors };
    });
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { state: 'damaged', errors: [(error as Error).message] };
  }
}

/** The bytes that the asset records name, in the order in which they were first recorded. */
export function recordedBlobs(path: string): readonly RecordedBlob[] {
  return withDatabase(path, (db) => {
    const sql = `SELECT hash, max(size_bytes) AS sizeBytes FROM assets GROUP BY hash
      ORDER BY min(rowid)`;
    return db.prepare(sql).all() as unknown as RecordedBlob[];
  });
}

/** The asset records with these hashes, for reports to an operator. */
export function assetsOf(
  path: string,
  hashes: readonly string[],
): readonly Pick<AssetRow, 'user' | 'filePath' | 'hash'>[] {
  if (hashes.length === 0) return [];
  return withDatabase(path, (db) => {
    const ask = db.prepare(
      'SELECT user, file_path AS filePath, hash FROM assets WHERE hash = ? ORDER BY rowid',
    );
    return hashes.flatMap((hash) => ask.all(hash)) as unknown as AssetRow[];
  });
}

/**
 * The names of bytes whose asset record may be missing, oldest first: the outputs of all jobs, then the v1 names
 * without an asset record. Files that were removed on purpose (`asset_id` is empty) are left out.
 */
export function rememberedNames(path: string): readonly RememberedName[] {
  return withDatabase(path, (db) => {
    const outputs = db.prepare(`SELECT user, outputs_json AS outputsJson FROM jobs
      WHERE outputs_json <> '[]' ORDER BY rowid`);
    const files = db.prepare(`SELECT ${sqlColumns<FileRow>(FILE_COLUMNS).select()}
      FROM files WHERE asset_id <> '' AND hash IS NOT NULL
      AND asset_id NOT IN (SELECT id FROM assets) ORDER BY rowid`);
    return [
      ...(outputs.all() as unknown as { user: string; outputsJson: string }[]).map((row) => ({
        kind: 'output' as const,
        ...row,
      })),
      ...(files.all() as unknown as FileRow[]).map((row) => ({ kind: 'file' as const, row })),
    ];
  });
}

/** The id of a ledger; `undefined` for a ledger of an earlier version. */
export function ledgerIdIn(path: string): string | undefined {
  return withDatabase(path, (db) => {
    if (!hasTable(db, 'identity')) return undefined;
    const found = db.prepare("SELECT value FROM identity WHERE name = 'id'").get();
    return (found as { value: string } | undefined)?.value;
  });
}

function hasTable(db: Database, name: string): boolean {
  const ask = db.prepare(`SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?`);
  return ask.get(name) !== undefined;
}

function withDatabase<T>(path: string, read: (db: Database) => T): T {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    return read(db);
  } finally {
    db.close();
  }
}
