import type { StatementSyncInstance } from '@photostructure/sqlite';
import type { Durability, FilesOnDisk } from '../../lib/durability.ts';
import type { Database } from './database.ts';
import type { LogSync } from './log-sync.ts';

type PendingWrite = {
  readonly durability: Durability;
  readonly files: FilesOnDisk | undefined;
  readonly settle: () => void;
  readonly reject: (cause: unknown) => void;
};

/**
 * Group commit: the writes of one turn of the event loop share a transaction and at most one fsync. A database in
 * memory has no `log`.
 */
export class Writer {
  readonly #db: Database;
  readonly #log: Omit<LogSync, 'close'> | undefined;
  readonly #begin: StatementSyncInstance;
  readonly #commit: StatementSyncInstance;
  readonly #savepoint: StatementSyncInstance;
  readonly #release: StatementSyncInstance;
  readonly #onFailure: (() => void)[] = [];
  #batch: PendingWrite[] = [];
  #isOpen = false;
  #immediate: NodeJS.Immediate | undefined;

  constructor(db: Database, log?: Omit<LogSync, 'close'>) {
    this.#db = db;
    this.#log = log;
    this.#begin = db.prepare('BEGIN IMMEDIATE');
    this.#commit = db.prepare('COMMIT');
    this.#savepoint = db.prepare('SAVEPOINT one');
    this.#release = db.prepare('RELEASE one');
  }

  /**
   * Applies a write at once, wholly or not at all, so that later reads see it. Resolves when it has the requested
   * durability. With `files`, it is not synced before these files are on the disk.
   */
  write<T>(apply: () => T, durability: Durability = 'fsync', files?: FilesOnDisk): Promise<T> {
    return new Promise((resolve, reject) => {
      try {
        this.#beginOnce();
        const value = this.#inSavepoint(apply);
        this.#batch.push({ durability, files, settle: () => resolve(value), reject });
      } catch (cause) {
        reject(writeFailure(cause));
        // A refused row fails only its own write. A full disk ends the transaction, and fails all writes in it.
        if (this.#db.isOpen && !this.#db.isTransaction) this.#fail(this.#takeBatch(), cause);
      }
    });
  }

  /** `act` is called when writes have failed that reads may have seen. */
  onFailure(act: () => void): void {
    this.#onFailure.push(act);
  }

  /** Commits the pending writes. */
  flush(): void {
    if (!this.#isOpen) return;
    const waiting = this.#takeBatch();
    try {
      this.#commit.run();
    } catch (cause) {
      rollBack(this.#db);
      return this.#fail(waiting, cause);
    }
    this.#settleCommitted(waiting);
  }

  #inSavepoint<T>(apply: () => T): T {
    this.#savepoint.run();
    try {
      const value = apply();
      this.#release.run();
      return value;
    } catch (cause) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK TO one; RELEASE one');
      throw cause;
    }
  }

  #beginOnce(): void {
    if (this.#isOpen) return;
    this.#begin.run();
    this.#isOpen = true;
    this.#immediate ??= setImmediate(() => this.flush());
  }

  #fail(writes: readonly PendingWrite[], cause: unknown): void {
    for (const act of this.#onFailure) act();
    for (const { reject } of writes) reject(writeFailure(cause));
  }

  #takeBatch(): PendingWrite[] {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    this.#isOpen = false;
    const taken = this.#batch;
    this.#batch = [];
    return taken;
  }

  #settleCommitted(writes: readonly PendingWrite[]): void {
    for (const { files } of writes) if (files) this.#log?.waitFor(files);
    const synced: PendingWrite[] = [];
    for (const write of writes) {
      if (this.#log && write.durability === 'fsync') synced.push(write);
      else write.settle();
    }
    if (synced.length > 0) void this.#settleSynced(synced);
    else this.#log?.syncSoon();
  }

  async #settleSynced(writes: readonly PendingWrite[]): Promise<void> {
    try {
      await this.#log?.sync();
    } catch (cause) {
      return this.#fail(writes, cause);
    }
    for (const { settle } of writes) settle();
  }
}

/** Rolls back, unless SQLite has already done so. The caller rejects the pending writes. */
function rollBack(db: Database): void {
  try {
    if (db.isTransaction) db.exec('ROLLBACK');
  } catch {
    // The next BEGIN reports the error.
  }
}

function writeFailure(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Error(`the ledger could not be written: ${reason}`, { cause });
}
