import type { Durability, FilesOnDisk } from '../../lib/durability.ts';
import type { Database } from './database.ts';
import type { LogSync } from './log-sync.ts';

export type Writer = ReturnType<typeof createWriter>;

type PendingWrite = {
  readonly settle: () => void;
  readonly reject: (cause: unknown) => void;
  readonly durability: Durability;
  readonly files: FilesOnDisk | undefined;
};

type WriteOptions = {
  readonly durability: Durability;
  readonly files: FilesOnDisk | undefined;
  readonly onFailure: (cause: unknown) => void;
};

/**
 * Group commit: the writes of one turn of the event loop share a transaction and at most one fsync. A database in
 * memory has no `log`.
 */
export function createWriter(db: Database, log?: Omit<LogSync, 'close'>) {
  const sql = { begin: db.prepare('BEGIN IMMEDIATE'), commit: db.prepare('COMMIT') };
  let batch: PendingWrite[] = [];
  let isOpen = false;
  let immediate: NodeJS.Immediate | undefined;

  function begin(): void {
    if (isOpen) return;
    sql.begin.run();
    isOpen = true;
    immediate ??= setImmediate(flush);
  }

  function takeBatch(): PendingWrite[] {
    clearImmediate(immediate);
    immediate = undefined;
    isOpen = false;
    const taken = batch;
    batch = [];
    return taken;
  }

  function flush(): void {
    if (!isOpen) return;
    const waiting = takeBatch();
    try {
      sql.commit.run();
    } catch (cause) {
      rollBack(db);
      return rejectAll(waiting, cause);
    }
    settleCommitted(waiting);
  }

  function settleCommitted(writes: readonly PendingWrite[]): void {
    for (const { files } of writes) if (files) log?.waitFor(files);
    const synced: PendingWrite[] = [];
    for (const write of writes) {
      if (log && write.durability === 'fsync') synced.push(write);
      else write.settle();
    }
    if (synced.length > 0) void settleSynced(synced);
    else log?.syncSoon();
  }

  async function settleSynced(writes: readonly PendingWrite[]): Promise<void> {
    try {
      await log?.sync();
    } catch (cause) {
      return rejectAll(writes, cause);
    }
    for (const { settle } of writes) settle();
  }

  /** A refused row fails only its own write. A full disk ends the transaction, and fails all writes in it. */
  function rejectIfRolledBack(cause: unknown): void {
    if (db.isOpen && !db.isTransaction) rejectAll(takeBatch(), cause);
  }

  function undo(cause: unknown): void {
    if (db.isOpen && db.isTransaction) db.exec('ROLLBACK TO one; RELEASE one');
    rejectIfRolledBack(cause);
  }

  function enqueueWrite<T>(
    apply: () => T,
    { durability, files, onFailure }: WriteOptions,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      try {
        begin();
        const value = apply();
        batch.push({ durability, files, settle: () => resolve(value), reject });
      } catch (cause) {
        reject(writeFailure(cause));
        onFailure(cause);
      }
    });
  }

  return {
    /** Commits the pending writes. */
    flush,
    /** Like `write`, for a single statement, which SQLite itself applies wholly or not at all. */
    writeOne: <T>(
      apply: () => T,
      durability: Durability = 'fsync',
      files?: FilesOnDisk,
    ): Promise<T> => enqueueWrite(apply, { durability, files, onFailure: rejectIfRolledBack }),
    /** Applies a write at once, so that later reads see it. Resolves when it has the requested durability. */
    write: <T>(apply: () => T, durability: Durability = 'fsync'): Promise<T> =>
      enqueueWrite(() => inSavepoint(apply), { durability, files: undefined, onFailure: undo }),
  };

  function inSavepoint<T>(apply: () => T): T {
    db.exec('SAVEPOINT one');
    const value = apply();
    db.exec('RELEASE one');
    return value;
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

function rejectAll(waiting: readonly PendingWrite[], cause: unknown): void {
  for (const { reject } of waiting) reject(writeFailure(cause));
}

function writeFailure(cause: unknown): Error {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Error(`the ledger could not be written: ${reason}`, { cause });
}
