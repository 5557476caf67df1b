import { closeSync, constants, fdatasync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { type FilesOnDisk, SOON_MS, syncPathNow } from '../../lib/durability.ts';

/** The fsync of a database in WAL mode with `synchronous = NORMAL`, whose commits do without. */
export type LogSync = {
  /** Resolves when everything that is committed now is on the disk. Other work goes on meanwhile. */
  readonly sync: () => Promise<void>;
  /** Syncs within `SOON_MS` what is committed now. */
  readonly syncSoon: () => void;
  /** No sync begins before these files are on the disk. */
  readonly waitFor: (files: FilesOnDisk) => void;
  /** Resolves when no sync runs any more. */
  readonly close: () => Promise<void>;
};

type LogSyncOptions = {
  readonly clock: Pick<Clock, 'callAfter'>;
  readonly syncFile: (file: number, done: (error: Error | null) => void) => void;
};

/**
 * `PRAGMA synchronous` cannot change within a transaction, and the first write of one does not know
 * whether a later one has to reach the disk. So the log is synced here, after its commit. No locks
 * are held on the log itself: closing it drops none.
 */
export function createLogSync(
  databasePath: string,
  { clock = systemClock, syncFile = fdatasync }: Partial<LogSyncOptions> = {},
): LogSync {
  let file: number | undefined;
  let files: FilesOnDisk[] = [];
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  let cancelTimer: (() => void) | undefined;

  function begin(): Promise<void> {
    cancelTimer?.();
    cancelTimer = undefined;
    const pending = files.splice(0).flatMap((isOnDisk) => isOnDisk() ?? []);
    const synced = pending.length === 0 ? syncLog() : Promise.all(pending).then(syncLog);
    running = synced.finally(() => (running = undefined));
    return running;
  }

  function syncLog(): Promise<void> {
    return new Promise((resolve, reject) => {
      file ??= openLog(databasePath);
      syncFile(file, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** A commit may come too late for the sync that runs: it waits for the next one. */
  function sync(): Promise<void> {
    if (!running) return begin();
    next ??= running.catch(ignoreError).then(() => {
      next = undefined;
      return begin();
    });
    return next;
  }

  return {
    sync,
    syncSoon() {
      // A failed sync fails the next write that waits for one.
      cancelTimer ??= clock.callAfter(SOON_MS, () => void sync().catch(ignoreError));
    },
    waitFor: (more) => void files.push(more),
    async close() {
      cancelTimer?.();
      const pending = files.splice(0).flatMap((isOnDisk) => isOnDisk() ?? []);
      await Promise.allSettled(pending);
      await (next ?? running)?.catch(ignoreError);
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

function ignoreError(): void {}

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
