import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';

/** An open SQLite database. */
export type Database = DatabaseSyncInstance;

const BUSY_TIMEOUT_MS = 10_000;

/** Opens a database for reading, which another process may have open. */
export function openReadOnly(path: string): Database {
  return new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
}

/** Reads a database, which another process may have open. Changes nothing. */
export function readDatabase<T>(path: string, read: (db: Database) => T): T {
  const db = openReadOnly(path);
  try {
    return read(db);
  } finally {
    db.close();
  }
}
