import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of one process for files that are received, or that nodes make. */
export type SpoolFolder = { readonly path: string; close(): void };

const HOUR_MS = 60 * 60_000;
/**
 * The age at which a folder is removed. A running process touches its folder every hour; the rest allows for clocks
 * that are set.
 */
const ABANDONED_AFTER_MS = 7 * 24 * HOUR_MS;
/** A process that has not touched its folder for this long no longer uses the data directory. */
const IDLE_PROCESS_MS = 24 * HOUR_MS;

/** Opens the folder of a process that is alone. Removes its content, which an earlier process left. */
export function openSpool(path: string): void {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/**
 * Opens a folder for this process beside those of other processes. Removes the folders of processes that ended long
 * ago.
 */
export function openSharedSpool(parent: string, instance: string): SpoolFolder {
  const path = join(parent, instance);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  removeAbandoned(parent, instance);
  const touchTimer = setInterval(() => touch(path), HOUR_MS);
  touchTimer.unref();
  return {
    path,
    close() {
      clearInterval(touchTimer);
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/**
 * Removes abandoned folders. The time of the new folder serves as the current time, because the file system may have
 * another clock.
 */
function removeAbandoned(parent: string, ownName: string): void {
  const nowMs = lastTouchedMs(join(parent, ownName));
  for (const name of readdirSync(parent)) {
    const path = join(parent, name);
    if (name !== ownName && lastTouchedMs(path) < nowMs - ABANDONED_AFTER_MS) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** Returns infinity when another process has just removed the folder. */
function lastTouchedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
}

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // The disk may be unavailable for a while. The next attempt is in an hour.
  }
}

/** Throws when processes with a Redis ledger use the folder. They take no lock, because several may use it. */
export function refuseSharedUse(root: string, nowMs: number): void {
  if (!existsSync(join(root, 'folder.id'))) return;
  const spool = join(root, 'spool');
  const isRecent = (name: string): boolean => {
    const stats = statSync(join(spool, name), { throwIfNoEntry: false });
    return stats?.isDirectory() === true && Math.abs(nowMs - stats.mtimeMs) < IDLE_PROCESS_MS;
  };
  const inUse = existsSync(spool) ? readdirSync(spool).filter(isRecent) : [];
  if (inUse.length === 0) return;
  throw new Error(
    `${inUse.length} Holdover processes use ${root}, or were killed within the last day: stop ` +
      `them first; if none runs, remove the content of ${spool}`,
  );
}
