import { closeSync, constants, fdatasync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { coalesce } from '../../lib/concurrency.ts';
import { type FilesOnDisk, SOON_MS, syncPathNow } from '../../lib/durability.ts';

/** Syncs the log of a database in WAL mode with `synchronous = NORMAL`, where a commit makes no fsync. */
export type LogSync = {
  /** Resolves when everything that is committed now is on the disk. Does not block the event loop. */
  readonly sync: () => Promise<void>;
  /** Begins a sync of everything that is committed now within `SOON_MS`. */
  readonly syncSoon: () => void;
  /** Delays the next sync until these files are on the disk. */
  readonly waitFor: (files: FilesOnDisk) => void;
  /** Ends the running sync and closes the log; never rejects because of a failed sync. */
  readonly close: () => Promise<void>;
};

type LogSyncOptions = {
  readonly clock: Clock;
  readonly syncFile: (file: number) => Promise<void>;
};

/**
 * Syncs the log (`-wal`) of the database after commits. `PRAGMA synchronous` cannot do this: it cannot change within a
 * transaction, and when a transaction begins it is unknown if one of its writes needs a sync. SQLite holds no locks on
 * the log, so closing it here releases none.
 */
export function createLogSync(
  databasePath: string,
  { clock = systemClock, syncFile = promisify(fdatasync) }: Partial<LogSyncOptions> = {},
): LogSync {
  let file: number | undefined;
  const files: FilesOnDisk[] = [];
  let last = Promise.resolve();
  let cancelTimer: (() => void) | undefined;

  function filesAreOnDisk(): Promise<unknown>[] {
    return files.splice(0).flatMap((isOnDisk) => isOnDisk() ?? []);
  }

  /** A running sync may have begun before the last commit: then the next sync is waited for. */
  const beginSync = coalesce(async () => {
    cancelTimer?.();
    cancelTimer = undefined;
    await Promise.all(filesAreOnDisk());
    file ??= openLog(databasePath);
    await syncFile(file);
  });

  const sync = (): Promise<void> => (last = beginSync());

  return {
    sync,
    syncSoon() {
      // The error is ignored here: a write that waits for the next sync gets its error.
      cancelTimer ??= clock.callAfter(SOON_MS, () => void sync().catch(ignoreError));
    },
    waitFor: (more) => void files.push(more),
    async close() {
      cancelTimer?.();
      await Promise.allSettled([last]);
      await Promise.allSettled(filesAreOnDisk());
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

function ignoreError(): void {}

/** Opens the log and syncs its folder, because SQLite creates the log again after each orderly end. */
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
