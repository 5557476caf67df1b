import { existsSync } from 'node:fs';
import { isDamage, pragma, refuseOtherVersion, versionOf } from './sqlite-ledger.ts';
import { type Database, readDatabase } from './database.ts';

/** The state of a database, and the reason when it is not `ok`. */
export type InspectedDatabase = {
  /** `empty`: a database without tables; for SQLite an empty file is one. */
  readonly state: 'ok' | 'absent' | 'empty' | 'damaged';
  readonly why: string;
};

/** Checks the whole database, to which another process may write meanwhile. Throws an error that is not damage. */
export function inspectDatabase(path: string): InspectedDatabase {
  if (!existsSync(path)) return { state: 'absent', why: `there is no ${path}` };
  try {
    return readDatabase(path, inspect);
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { state: 'damaged', why: (error as Error).message };
  }
}

function inspect(db: Database): InspectedDatabase {
  const why = String(pragma(db, 'integrity_check(1)'));
  if (why !== 'ok') return { state: 'damaged', why };
  const version = versionOf(db);
  if (version === 0) return { state: 'empty', why: 'it has no tables' };
  refuseOtherVersion(version);
  return { state: 'ok', why };
}

/** The id of a ledger. */
export function ledgerIdIn(path: string): string {
  return readDatabase(path, (db) => {
    const found = db.prepare("SELECT value FROM identity WHERE name = 'id'").get();
    return (found as { value: string }).value;
  });
}
