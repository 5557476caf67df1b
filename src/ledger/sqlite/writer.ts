import type { Durability, FilesOnDisk } from '../../lib/durability.ts';
import type { Database } from './database.ts';
import type { LogSync } from './log-sync.ts';

export type Writer = ReturnType<typeof createWriter>;

type Waiter = { readonly settle: () => void; readonly reject: (cause: unknown) => void };

type PendingWrite = Waiter & {
  readonly durability: Durability;
  readonly files: FilesOnDisk | undefined;
  readonly apply: () => unknown;
};

type WriteOptions = Pick<PendingWrite, 'durability' | 'files'> & {
  readonly giveUp: (cause: unknown) => void;
};

/** Transient writes alone are committed after this time. */
const TRANSIENT_MS = 20;

/**
 * Group commit: writes of one turn of the event loop share a transaction and at most one fsync. A
 * transient write is stored with the next write of another durability, and never after it: when its
 * transaction fails it is applied again in the next one. A database in memory has no log.
 */
export function createWriter(db: Database, log?: Omit<LogSync, 'close'>) {
  const sql = { begin: db.prepare('BEGIN IMMEDIATE'), commit: db.prepare('COMMIT') };
  let batch: PendingWrite[] = [];
  /** Transient writes of a transaction that failed. */
  let lost: PendingWrite[] = [];
  const waiters: Waiter[] = [];
  let isOpen = false;
  let immediate: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout | undefined;

  function begin(): void {
    if (isOpen) return;
    sql.begin.run();
    isOpen = true;
    applyLost();
  }

  /** A refused row is dropped; a full disk ends the transaction, and all of them wait for the next. */
  function applyLost(): void {
    for (let write = lost.shift(); write; write = lost.shift()) {
      batch.push(write);
      try {
        write.apply();
      } catch (cause) {
        rejectIfRolledBack(cause);
        if (!isOpen) throw cause;
      }
    }
  }

  function scheduleFlush(durability: Durability): void {
    if (durability === 'transient') timer ??= setTimeout(flush, TRANSIENT_MS);
    else immediate ??= setImmediate(flush);
  }

  function takeBatch(): PendingWrite[] {
    clearImmediate(immediate);
    clearTimeout(timer);
    immediate = undefined;
    timer = undefined;
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
      return giveUpBatch(waiting, cause);
    }
    settleCommitted(waiting);
  }

  function giveUpBatch(writes: readonly PendingWrite[], cause: unknown): void {
    const again = writes.filter(({ durability }) => durability === 'transient');
    lost = [...again, ...lost];
    rejectAll([...writes, ...waiters.splice(0)], cause);
  }

  function settleCommitted(writes: readonly PendingWrite[]): void {
    for (const { settle } of waiters.splice(0)) settle();
    for (const { files } of writes) if (files) log?.waitFor(files);
    const synced: PendingWrite[] = [];
    for (const write of writes) {
      if (log && write.durability === 'fsync') synced.push(write);
      else write.settle();
    }
    if (synced.length > 0) void settleSynced(synced);
    else if (writes.some(({ durability }) => durability === 'soon')) log?.syncSoon();
  }

  async function settleSynced(writes: readonly PendingWrite[]): Promise<void> {
    try {
      await log?.sync();
    } catch (cause) {
      return rejectAll(writes, cause);
    }
    for (const { settle } of writes) settle();
  }

  /**
   * A refused row fails only its own write; a full disk ends the transaction and fails all writes
   * in it.
   */
  function rejectIfRolledBack(cause: unknown): void {
    if (db.isOpen && !db.isTransaction) giveUpBatch(takeBatch(), cause);
  }

  function undo(cause: unknown): void {
    if (db.isOpen && db.isTransaction) db.exec('ROLLBACK TO one; RELEASE one');
    rejectIfRolledBack(cause);
  }

  function enqueueWrite<T>(
    apply: () => T,
    { durability, files, giveUp }: WriteOptions,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      try {
        begin();
        scheduleFlush(durability);
        const value = apply();
        batch.push({ durability, files, apply, settle: () => resolve(value), reject });
        if (durability === 'transient') resolve(value);
      } catch (cause) {
        rejectAll([{ reject }], cause);
        giveUp(cause);
      }
    });
  }

  return {
    /** Commits what is pending. */
    flush,
    /** Resolves when what is applied now is committed. */
    async committed(): Promise<void> {
      if (!isOpen && lost.length === 0) return;
      await new Promise<void>((settle, reject) => void waiters.push({ settle, reject }));
    },
    /** The same as `write` for one statement, which SQLite itself applies wholly or not at all. */
    writeOne: <T>(
      apply: () => T,
      durability: Durability = 'fsync',
      files?: FilesOnDisk,
    ): Promise<T> => enqueueWrite(apply, { durability, files, giveUp: rejectIfRolledBack }),
    /** Applies a write at once, visible to later reads; resolves when it is as durable as asked. */
    write: <T>(apply: () => T, durability: Durability = 'fsync'): Promise<T> =>
      enqueueWrite(() => inSavepoint(apply), { durability, files: undefined, giveUp: undo }),
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
