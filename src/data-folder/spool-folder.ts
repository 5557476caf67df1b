import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** A folder for files on their way, of one process. */
export type SpoolFolder = { readonly path: string; close(): void };

const HOUR_MS = 60 * 60_000;
/** A living process touches its folder every hour; clocks that are set by a day must not end it. */
const ABANDONED_AFTER_MS = 7 * 24 * HOUR_MS;
/** A process that has not touched its folder for so long does not use the data directory any more. */
const IDLE_PROCESS_MS = 24 * HOUR_MS;

/** For a process that is alone: whatever lies there belonged to one that is dead. */
export function openSpool(path: string): SpoolFolder {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return { path, close: () => {} };
}

/** One process's own among those of others, whose folders go when they are long dead. */
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

/** By the clock of the file system, which has just made a folder: it may be another machine's. */
function removeAbandoned(parent: string, ownName: string): void {
  const nowMs = lastTouchedMs(join(parent, ownName));
  for (const name of readdirSync(parent)) {
    const path = join(parent, name);
    if (name !== ownName && lastTouchedMs(path) < nowMs - ABANDONED_AFTER_MS) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** Another process may remove it at the same time. */
function lastTouchedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
}

function touch(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // The disk may be away for a while; an hour later it is tried again.
  }
}

/** Over a Redis ledger there is no lock, as many processes use the folder. */
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
      `them first, and remove what is in ${spool} if none is left`,
  );
}
