import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/** Group commit: writes of one turn of the event loop share a transaction and its one fsync. */
export type Writer = {
  /** Applies a write at once, visible to later reads; resolves when it is durable. */
  write<T>(apply: () => T): Promise<T>;
  /** Commits what is pending. */
  flush(): void;
};

type Pending = { readonly settle: () => void; readonly reject: (cause: unknown) => void };

export function createWriter(db: DatabaseSyncInstance): Writer {
  let pending: Pending[] = [];
  let timer: NodeJS.Immediate | undefined;

  function begin(): void {
    if (timer !== undefined) return;
    db.exec('BEGIN IMMEDIATE');
    timer = setImmediate(flush);
  }

  function flush(): void {
    if (timer === undefined) return;
    clearImmediate(timer);
    timer = undefined;
    const batch = pending;
    pending = [];
    try {
      db.exec('COMMIT');
    } catch (cause) {
      abandon(batch, cause);
      return;
    }
    for (const { settle } of batch) settle();
  }

  /** A full disk ends the whole transaction: everyone who waits for it must hear. */
  function abandon(batch: readonly Pending[], cause: unknown): void {
    if (db.isTransaction) db.exec('ROLLBACK');
    for (const { reject } of batch) reject(new Error('the ledger could not be written', { cause }));
  }

  return {
    write(apply) {
      return new Promise((resolve, reject) => {
        try {
          begin();
          db.exec('SAVEPOINT one');
          const value = apply();
          db.exec('RELEASE one');
          pending.push({ settle: () => resolve(value), reject });
        } catch (cause) {
          reject(new Error('the ledger could not be written', { cause }));
          if (db.isTransaction) {
            db.exec('ROLLBACK TO one; RELEASE one');
            return;
          }
          if (timer !== undefined) clearImmediate(timer);
          timer = undefined;
          const lost = pending;
          pending = [];
          abandon(lost, cause);
        }
      });
    },
    flush,
  };
}
