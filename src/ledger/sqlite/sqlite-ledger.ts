import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { Database } from './database.ts';
import type { LedgerIdentity } from '../identity.ts';
import type { Ledger } from '../ledger.ts';
import { assetStore, keyStore } from './assets.ts';
import { callCountStore } from './call-counts.ts';
import { fileStore, settingStore, createFileListCache } from './files.ts';
import { jobStore } from './jobs.ts';
import { longTexts } from './long-texts.ts';
import { modelCallStore, replayStore } from './models.ts';
import { promptStore } from './prompts.ts';
import { MIGRATIONS } from './schema.ts';
import { addMissingColumns } from './sql-columns.ts';
import { JOB_COLUMNS, PROMPT_COLUMNS } from '../columns.ts';
import { createLogSync } from './log-sync.ts';
import { type Writer, createWriter } from './writer.ts';

// The same API as node:sqlite, which Node 20 does not have: once it may go, this line is the change.

/** A ledger and the identity that is stored in it. */
export type SqliteLedger = Ledger & { readonly identity: LedgerIdentity };

const IN_MEMORY = ':memory:';
/** How long a write waits for a person's backup or shell that holds the file. */
const BUSY_TIMEOUT_MS = 1000;
const SQLITE_BUSY = 5;
/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const DAMAGED: readonly unknown[] = [11, 26];

/**
 * Opens the ledger in one SQLite file, one process at a time. Throws with a sentence a person can
 * act on when the file is in use, damaged, or from a newer version; it is never recreated silently.
 */
export function openSqliteLedger(options: { readonly path: string }): SqliteLedger {
  const { path } = options;
  const opened: Database[] = [];
  const closeAll = (): void => opened.splice(0).forEach((db) => db.close());
  try {
    if (path !== IN_MEMORY) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      opened.push(lockFile(path));
      createPrivate(path);
    }
    const db = refuseNulTexts(
      new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableForeignKeyConstraints: false }),
    );
    // The lock is released last: until then no other process may use the file.
    opened.unshift(db);
    prepare(db);
    return createLedger(db, path, closeAll);
  } catch (cause) {
    closeAll();
    const Failure = isDamage(cause) ? DamagedLedger : Error;
    throw new Failure(`the ledger ${path} ${failureReason(cause)}`, { cause });
  }
}

/** The file is there, and cannot be read as a database. */
export class DamagedLedger extends Error {}

/** This package leaves the code out where a statement fails while its rows are read. */
const DAMAGE = /^(database disk image is malformed|file is not a database)$/;

/** True when SQLite says that the file is not as it wrote it. */
export function isDamage(cause: unknown): boolean {
  const { errcode, message = '' } = cause as { errcode?: unknown; message?: string };
  return DAMAGED.includes(errcode) || DAMAGE.test(message);
}

function createLedger(db: Database, path: string, closeAll: () => void): SqliteLedger {
  const log = path === IN_MEMORY ? undefined : createLogSync(path);
  const writer = createWriter(db, log);
  longTexts(db, writer).dropOrphans();
  const lists = createFileListCache();
  return {
    identity: sqliteIdentity(db, writer),
    prompts: promptStore(db, writer),
    files: fileStore(db, writer, lists),
    jobs: jobStore(db, writer),
    assets: assetStore(db, writer, lists),
    keys: keyStore(db, writer),
    settings: settingStore(db, writer),
    replays: replayStore(db, writer),
    modelCalls: modelCallStore(db, writer),
    calls: callCountStore(db, writer),
    committed: () => writer.committed(),
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
 * Moves everything into the one file, so that it can be copied. Closing alone does not: this
 * package keeps the connection half open until its prepared statements are garbage collected.
 */
function checkpoint(db: Database): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } catch {
    // On a full disk the data stay in the -wal file, where the next start finds them.
  }
}

/** Another process holds the lock. */
export class LedgerInUse extends Error {}

/** Locks the database against other processes until the returned function is called. */
export function lockDatabase(path: string): () => void {
  try {
    const guard = lockFile(path);
    return () => guard.close();
  } catch (cause) {
    throw new Error(`the ledger ${path} ${failureReason(cause)}`, { cause });
  }
}

/**
 * Locks for one process at a time. The operating system releases the lock with the process, also
 * after kill -9.
 */
export function lockFile(path: string): Database {
  const lockPath = `${path}.lock`;
  createPrivate(lockPath);
  const guard = new DatabaseSync(lockPath);
  try {
    guard.exec('BEGIN EXCLUSIVE');
    return guard;
  } catch (cause) {
    guard.close();
    const taken = (cause as { errcode?: unknown }).errcode === SQLITE_BUSY;
    throw taken ? new LedgerInUse('the lock is taken', { cause }) : cause;
  }
}

/**
 * Creates the file before SQLite would, with wider permissions that its -wal file would inherit. An
 * existing file is never opened here: closing it would drop the locks this process holds on it.
 */
function createPrivate(path: string): void {
  try {
    writeFileSync(path, '', { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    chmodSync(path, 0o600);
  }
}

function prepare(db: Database): void {
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  const { quick_check: verdict } = db.prepare('PRAGMA quick_check(1)').get() as {
    quick_check: string;
  };
  if (verdict !== 'ok') throw Object.assign(new Error(verdict), { errcode: DAMAGED[0] });
  migrate(db);
  // From here on a commit reaches the operating system, and `createLogSync` the disk.
  db.exec('PRAGMA synchronous = NORMAL');
}

/** Brings the schema forward in one transaction, so that a kill in between leaves the old one. */
function migrate(db: Database): void {
  const { user_version: version } = db.prepare('PRAGMA user_version').get() as {
    user_version: number;
  };
  if (version > MIGRATIONS.length) {
    throw new Error(`it was written by a newer Holdover (schema ${version})`);
  }
  if (version < MIGRATIONS.length) {
    db.exec('BEGIN IMMEDIATE');
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    db.exec('COMMIT');
  }
  addMissingColumns(db, 'prompts', PROMPT_COLUMNS);
  addMissingColumns(db, 'jobs', JOB_COLUMNS);
}

/** The rest of the message that begins with "the ledger <path>". */
function failureReason(cause: unknown): string {
  if (cause instanceof LedgerInUse) {
    return 'is in use by another Holdover: stop it, or use another --data-dir';
  }
  // A check reports every fault on a line of its own.
  const reason = (cause instanceof Error ? cause.message : String(cause)).split('\n', 1)[0];
  if (!isDamage(cause)) return `cannot be opened: ${reason}`;
  return (
    `is damaged (${reason}): "holdover check" says how, put a backup back with ` +
    '"holdover restore", or start once with --start-anew, which moves it and all files aside and removes nothing'
  );
}

type Method = (...parameters: unknown[]) => unknown;

/** A text that the database would truncate. */
class NulInText extends Error {
  override readonly name = 'NulInText';
}

/**
 * The database, with statements that refuse texts with a NUL. The package ends each text it hands to
 * SQLite at the first NUL, so that a write to `a\0b` replaces `a`.
 * @internal
 */
export function refuseNulTexts(db: Database): Database {
  const prepare = db.prepare.bind(db);
  replace(db, 'prepare', (...given: Parameters<Database['prepare']>) => {
    const statement = prepare(...given);
    for (const name of ['run', 'get', 'all', 'iterate'] as const) {
      const method = statement[name] as Method;
      replace(statement, name, (...parameters: unknown[]) => {
        refuseNul(parameters);
        return method.apply(statement, parameters);
      });
    }
    return statement;
  });
  return db;
}

/** The package's own methods cannot be assigned to. */
function replace<T extends object>(object: T, name: keyof T, value: unknown): void {
  Object.defineProperty(object, name, { value });
}

function refuseNul(parameters: readonly unknown[]): void {
  for (const value of parameters) {
    const isText = typeof value === 'string';
    if (isText ? value.includes('\0') : hasNulMember(value))
      throw new NulInText('a text with a NUL cannot be recorded or looked for');
  }
}

/** Parameters are passed one by one, or by name. */
function hasNulMember(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  return Object.values(value).some((member) => typeof member === 'string' && member.includes('\0'));
}

/** The row of the table `identity`. */
function sqliteIdentity(db: Database, writer: Writer): LedgerIdentity {
  const select = db.prepare('SELECT value FROM identity WHERE name = ?');
  const insert = db.prepare('INSERT OR IGNORE INTO identity (name, value) VALUES (?, ?)');
  const valueOf = (name: string): string | undefined =>
    (select.get(name) as { value: string } | undefined)?.value;
  return {
    id: valueOf('id') ?? '',
    storedIn: 'folder',
    predatesFolders: valueOf('predates_folders') !== undefined,
    folder: async () => valueOf('folder'),
    tie: (folderId) =>
      writer.write(() => {
        insert.run('folder', folderId);
        return valueOf('folder') ?? folderId;
      }),
  };
}
