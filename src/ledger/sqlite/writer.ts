import type { Durability } from '../../lib/durability.ts';
import type { Database } from './database.ts';

export type Writer = ReturnType<typeof createWriter>;

type PendingWrite = {
  readonly durability: Durability;
  readonly settle: () => void;
  readonly reject: (cause: unknown) => void;
};

/**
 * Group commit: writes of one turn of the event loop share a transaction and at most one fsync.
 * `sync` brings everything that is committed to the disk; a database in memory has none.
 */
export function createWriter(db: Database, sync: () => void = () => {}) {
  const sql = { begin: db.prepare('BEGIN IMMEDIATE'), commit: db.prepare('COMMIT') };
  let batch: PendingWrite[] = [];
  let timer: NodeJS.Immediate | undefined;

  function begin(): void {
    if (timer !== undefined) return;
    sql.begin.run();
    timer = setImmediate(flush);
  }

  function takeBatch(): PendingWrite[] {
    clearImmediate(timer);
    timer = undefined;
    const taken = batch;
    batch = [];
    return taken;
  }

  function flush(): void {
    if (timer === undefined) return;
    const waiting = takeBatch();
    try {
      sql.commit.run();
      if (waiting.some(({ durability }) => durability === 'fsync')) sync();
    } catch (cause) {
      rollBack(db);
      return rejectAll(waiting, cause);
    }
    for (const { settle } of waiting) settle();
  }

  /**
   * A refused row fails only its own write; a full disk ends the transaction and fails all writes
   * in it.
   */
  function rejectIfRolledBack(cause: unknown): void {
    if (db.isOpen && !db.isTransaction) rejectAll(takeBatch(), cause);
  }

  function undo(cause: unknown): void {
    if (db.isOpen && db.isTransaction) db.exec('ROLLBACK TO one; RELEASE one');
    rejectIfRolledBack(cause);
  }

  function enqueueWrite<T>(
    apply: () => T,
    durability: Durability,
    giveUp: (cause: unknown) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      try {
        begin();
        const value = apply();
        batch.push({ durability, settle: () => resolve(value), reject });
      } catch (cause) {
        rejectAll([{ reject }], cause);
        giveUp(cause);
      }
    });
  }

  return {
    /** Commits what is pending. */
    flush,
    /** The same as `write` for one statement, which SQLite itself applies wholly or not at all. */
    writeOne: <T>(apply: () => T, durability: Durability = 'fsync'): Promise<T> =>
      enqueueWrite(apply, durability, rejectIfRolledBack),
    /** Applies a write at once, visible to later reads; resolves when it is as durable as asked. */
    write: <T>(apply: () => T, durability: Durability = 'fsync'): Promise<T> =>
      enqueueWrite(() => inSavepoint(apply), durability, undo),
  };

  function inSavepoint<T>(apply: () => T): T {
    db.exec('SAVEPOINT one');
    const value = apply();
    db.exec('RELEASE one');
    return value;
  }
}

/** SQLite may have rolled back already. The pending writes are lost either way and are rejected. */
function rollBack(db: Database): void {
  try {
    if (db.isTransaction) db.exec('ROLLBACK');
  } catch {
    // The next BEGIN reports the error.
  }
}

function rejectAll(waiting: readonly Pick<PendingWrite, 'reject'>[], cause: unknown): void {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const error = new Error(`the ledger could not be written: ${reason}`, { cause });
  for (const { reject } of waiting) reject(error);
}
