import { closeSync, constants, fdatasyncSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncPathNow } from '../../lib/durability.ts';

/** The fsync of a database in WAL mode with `synchronous = NORMAL`, whose commits do without. */
export type LogSync = {
  /** Brings everything that is committed to the disk. */
  readonly sync: () => void;
  readonly close: () => void;
};

/**
 * `PRAGMA synchronous` cannot change within a transaction, and the first write of one does not know
 * whether a later one has to reach the disk. So the log is synced here, after its commit. No locks
 * are held on the log itself: closing it drops none.
 */
export function createLogSync(databasePath: string): LogSync {
  let file: number | undefined;
  return {
    sync() {
      file ??= openLog(databasePath);
      fdatasyncSync(file);
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

/** SQLite creates the log anew after each orderly end, so its name has to reach the disk as well. */
function openLog(databasePath: string): number {
  const file = openSync(`${databasePath}-wal`, constants.O_RDWR);
  try {
    syncPathNow(dirname(databasePath));
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}
