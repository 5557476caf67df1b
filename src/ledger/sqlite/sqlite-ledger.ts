import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
// This package has the API of node:sqlite, which Node 20 lacks. Import node:sqlite when Node 20 is no longer supported.
import { DatabaseSync } from '@photostructure/sqlite';
import { type Database, readDatabase } from './database.ts';
import { SCHEMA_VERSION } from '../columns.ts';
import type { LedgerIdentity } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import { assetStore, keyStore } from './assets.ts';
import { callCountStore } from './call-counts.ts';
import { createFileLists, fileStore, textStore } from './files.ts';
import { jobStore } from './jobs.ts';
import { LongTexts } from './long-texts.ts';
import { modelCallStore, replayStore } from './models.ts';
import { promptStore } from './prompts.ts';
import { SCHEMA } from './schema.ts';
import { createLogSync } from './log-sync.ts';
import { Writer } from './writer.ts';

/** A ledger with its identity, which is stored in the same file. */
export type SqliteLedger = Ledger & { readonly identity: LedgerIdentity };

type OpenOptions = { readonly path: string; readonly newId?: string | undefined };

const IN_MEMORY = ':memory:';
/** How long a write waits for another program that has locked the file, for example a backup or a shell. */
const BUSY_TIMEOUT_MS = 1000;
const SQLITE_BUSY = 5;
/** The codes SQLITE_CORRUPT and SQLITE_NOTADB. */
const DAMAGED: readonly unknown[] = [11, 26];

/**
 * Opens the ledger in one SQLite file, which one process at a time may use. Throws an error with a sentence for the
 * operator when the file is in use, damaged, or of another version. Never replaces an existing file. `newId`: the id
 * of a new ledger.
 */
export function openSqliteLedger({
  path,
  newId = randomBytes(16).toString('hex'),
}: OpenOptions): SqliteLedger {
  const opened: Database[] = [];
  const closeAll = (): void => opened.splice(0).forEach((db) => db.close());
  try {
    if (path !== IN_MEMORY) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      opened.push(lockFile(path));
      createPrivate(path);
      refuseOtherVersion(readDatabase(path, versionOf));
    }
    const db = new DatabaseSync(path, {
      timeout: BUSY_TIMEOUT_MS,
      enableForeignKeyConstraints: false,
    });
    // Close the database before the lock, so that no other process uses the file until it is closed.
    opened.unshift(db);
    prepare(db, newId);
    return createLedger(db, path, closeAll);
  } catch (cause) {
    closeAll();
    const Failure = isDamage(cause) ? DamagedLedger : Error;
    throw new Failure(`the ledger ${path} ${failureReason(cause)}`, { cause });
  }
}

/** The file exists and cannot be read as a database. */
export class DamagedLedger extends Error {}

/** Messages of damage. The package sets no code when a statement fails while its rows are read. */
const DAMAGE = /^(database disk image is malformed|file is not a database)$/;

/** True for an error with which SQLite reports a damaged file. */
export function isDamage(cause: unknown): boolean {
  const { errcode, message = '' } = cause as { errcode?: unknown; message?: string };
  return DAMAGED.includes(errcode) || DAMAGE.test(message);
}

function createLedger(db: Database, path: string, closeAll: () => void): SqliteLedger {
  const log = path === IN_MEMORY ? undefined : createLogSync(path);
  const writer = new Writer(db, log);
  new LongTexts(db, writer).dropOrphans();
  const lists = createFileLists(writer);
  return {
    identity: sqliteIdentity(db, writer),
    prompts: promptStore(db, writer),
    files: fileStore(db, writer, lists),
    jobs: jobStore(db, writer),
    assets: assetStore(db, writer, lists),
    keys: keyStore(db, writer),
    settings: textStore(db, writer, 'settings'),
    assetLabels: textStore(db, writer, 'asset_labels'),
    replays: replayStore(db, writer),
    modelCalls: modelCallStore(db, writer),
    calls: callCountStore(db, writer),
    synced: async () => await log?.sync(),
    async close() {
      if (!db.isOpen) return;
      writer.flush();
      await log?.close();
      if (!db.isOpen) return;
      writer.flush();
      checkpoint(db);
      closeAll();
    },
  };
}

/**
 * Moves the log into the main file, so that this file alone can be copied. Closing the database does not do this,
 * because the package keeps the connection until its prepared statements are garbage collected.
 */
function checkpoint(db: Database): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // On a full disk the data stay in the -wal file, and the next start reads them there.
  }
}

/** Locks the database against other processes until the returned function is called. */
export function lockDatabase(path: string): () => void {
  try {
    const lock = lockFile(path);
    return () => lock.close();
  } catch (cause) {
    throw new Error(`the ledger ${path} ${failureReason(cause)}`, { cause });
  }
}

/**
 * Locks the database for this process; closing the result releases the lock. The operating system releases it when
 * the process ends, also after `kill -9`. Throws when another process has it.
 */
export function lockFile(path: string): Database {
  const lockPath = `${path}.lock`;
  createPrivate(lockPath);
  const lock = new DatabaseSync(lockPath);
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (cause) {
    lock.close();
    const isTaken = (cause as { errcode?: unknown }).errcode === SQLITE_BUSY;
    if (!isTaken) throw cause;
    const inUse = `${path} is in use by another Holdover: stop it, or use another folder`;
    throw new Error(inUse, { cause });
  }
}

/**
 * Creates the file with mode 0600. SQLite would create it, and then its -wal file, with wider permissions. An
 * existing file is not opened, because closing it would release the locks that this process holds on it.
 */
function createPrivate(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    chmodSync(path, 0o600);
  }
}

/** Reads a pragma with one value. */
export function pragma(db: Database, name: string): unknown {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0];
}

function prepare(db: Database, newId: string): void {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  const verdict = pragma(db, 'quick_check(1)');
  if (verdict !== 'ok') throw Object.assign(new Error(String(verdict)), { errcode: DAMAGED[0] });
  createSchema(db, newId);
  // With NORMAL a commit writes to the operating system only; `createLogSync` syncs to the disk.
  db.exec('PRAGMA synchronous = NORMAL');
}

/** Creates the schema in one transaction, so that a kill leaves an empty database. */
function createSchema(db: Database, newId: string): void {
  if (versionOf(db) !== 0) return;
  db.exec(`BEGIN IMMEDIATE; ${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION}`);
  db.prepare(`INSERT INTO identity VALUES ('id', ?)`).run(newId);
  db.exec('COMMIT');
}

export function versionOf(db: Database): number {
  return Number(pragma(db, 'user_version'));
}

export function refuseOtherVersion(version: number): void {
  if (version === 0 || version === SCHEMA_VERSION) return;
  throw new Error(
    `the database was written by another version of Holdover (schema ${version}, this one has ${SCHEMA_VERSION}): ` +
      'use that version, or another --data-dir',
  );
}

/** The rest of the message that begins with "the ledger <path>". */
function failureReason(cause: unknown): string {
  // The check reports each fault on a line of its own: the first is enough.
  const reason = (cause instanceof Error ? cause.message : String(cause)).split('\n', 1)[0];
  if (!isDamage(cause)) return `cannot be opened: ${reason}`;
  return (
    `is damaged (${reason}): "holdover check" says how, put a backup back with ` +
    '"holdover restore", or start once with --start-anew, which moves it and all files aside and removes nothing'
  );
}

/** The identity in the table `identity`, which has one row for each name. */
function sqliteIdentity(db: Database, writer: Writer): LedgerIdentity {
  const select = db.prepare('SELECT value FROM identity WHERE name = ?');
  const insert = db.prepare('INSERT OR IGNORE INTO identity (name, value) VALUES (?, ?)');
  const valueOf = (name: string): string | undefined =>
    (select.get(name) as { value: string } | undefined)?.value;
  return {
    id: valueOf('id') ?? '',
    storedIn: 'folder',
    folder: async () => valueOf('folder'),
    tie: (folderId) =>
      writer.write(() => {
        insert.run('folder', folderId);
        return valueOf('folder') ?? folderId;
      }),
  };
}
