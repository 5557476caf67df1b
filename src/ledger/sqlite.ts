import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
// The same API as node:sqlite, which Node 20 does not have: once it may go, this line is the change.
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Ledger } from './ledger.ts';
import { assetStore } from './sqlite-assets.ts';
import { fileStore, settingStore } from './sqlite-files.ts';
import { jobStore, keyStore } from './sqlite-jobs.ts';
import { promptStore } from './sqlite-prompts.ts';
import { MIGRATIONS } from './sqlite-schema.ts';
import { createWriter } from './sqlite-writer.ts';

/**
 * Opens the ledger in one SQLite file, one process at a time. Throws with a sentence a person can
 * act on when the file is in use, damaged, or from a newer version; it is never recreated silently.
 */
export function openSqliteLedger(options: { readonly path: string }): Ledger {
  const { path } = options;
  const onDisk = path !== ':memory:';
  if (onDisk) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const release = onDisk ? lock(path) : () => {};
  const db = open(path, release);
  if (onDisk) chmodSync(path, 0o600);
  const writer = createWriter(db);
  return {
    prompts: promptStore(db, writer),
    files: fileStore(db, writer),
    jobs: jobStore(db, writer),
    assets: assetStore(db, writer),
    keys: keyStore(db, writer),
    settings: settingStore(db, writer),
    async close() {
      if (!db.isOpen) return;
      writer.flush();
      db.close();
      release();
    },
  };
}

/** One process at a time; the lock is the system's and goes with the process, kill -9 included. */
function lock(path: string): () => void {
  const guard = new DatabaseSync(`${path}.lock`);
  try {
    guard.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    guard.close();
    throw new Error(`${path} is in use by another Holdover: stop it, or use another --data-dir`, { cause });
  }
  return () => {
    guard.exec('ROLLBACK');
    guard.close();
  };
}

function open(path: string, release: () => void): DatabaseSyncInstance {
  let db: DatabaseSyncInstance | undefined;
  try {
    db = new DatabaseSync(path);
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    migrate(db, path);
    return db;
  } catch (cause) {
    db?.close();
    release();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`the ledger ${path} cannot be opened: ${reason}`, { cause });
  }
}

/** Brings the schema forward in one transaction, so that a kill in between leaves the old one. */
function migrate(db: DatabaseSyncInstance, path: string): void {
  db.exec('BEGIN IMMEDIATE');
  const { user_version: version } = db.prepare('PRAGMA user_version').get() as { user_version: number };
  if (version > MIGRATIONS.length) {
    throw new Error(`${path} was written by a newer version (schema ${version})`);
  }
  for (const step of MIGRATIONS.slice(version)) db.exec(step);
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  db.exec('COMMIT');
}
