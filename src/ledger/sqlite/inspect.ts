import { statSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { SCHEMA_VERSION } from './schema.ts';
import { isDamage } from './sqlite-ledger.ts';
import type { Database } from './database.ts';

/** The state of a database, and what is wrong with it. */
export type InspectedDatabase = {
  /** `empty`: a database without tables; for SQLite an empty file is one. */
  readonly state: 'ok' | 'absent' | 'empty' | 'damaged';
  readonly errors: readonly string[];
};

const MAX_ERRORS = 100;
const BUSY_TIMEOUT_MS = 10_000;

/** Checks the whole database, to which another process may write meanwhile. Throws an error that is not damage. */
export function inspectDatabase(path: string): InspectedDatabase {
  if (statSync(path, { throwIfNoEntry: false }) === undefined)
    return { state: 'absent', errors: [`there is no database ${path}`] };
  try {
    return withDatabase(path, inspect);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { state: 'damaged', errors: [(error as Error).message] };
  }
}

function inspect(db: Database): InspectedDatabase {
  const found = db.prepare(`PRAGMA integrity_check(${MAX_ERRORS})`).all();
  const errors = (found as { integrity_check: string }[])
    .map((row) => row.integrity_check)
    .filter((text) => text !== 'ok');
  if (errors.length > 0) return { state: 'damaged', errors };
  const { user_version: version } = db.prepare('PRAGMA user_version').get() as {
    user_version: number;
  };
  if (version === 0) return { state: 'empty', errors: ['it has no tables'] };
  if (version === SCHEMA_VERSION) return { state: 'ok', errors };
  return { state: 'damaged', errors: ['it was written by another version of Holdover'] };
}

/** The id of a ledger. */
export function ledgerIdIn(path: string): string {
  return withDatabase(path, (db) => {
    const found = db.prepare("SELECT value FROM identity WHERE name = 'id'").get();
    return (found as { value: string }).value;
  });
}

function withDatabase<T>(path: string, read: (db: Database) => T): T {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    return read(db);
  } finally {
    db.close();
  }
}
