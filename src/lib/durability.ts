import { closeSync, constants, fsync, fsyncSync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { undefinedIfAbsent } from './absent-file.ts';
import { forEachConcurrently } from './concurrency.ts';

/**
 * `fsync`: the write survives a power cut when it resolves. `soon`: it survives `kill -9` then, and a
 * power cut after at most `SOON_MS` and the time of a sync. `transient`: it may be lost alone, but never
 * when a later write is not.
 */
export type Durability = 'fsync' | 'soon' | 'transient';

/** A power cut takes writes with the durability `soon` that are not older than this. */
export const SOON_MS = 100;

/** Resolves when the files that a record names survive a power cut; `undefined` when they do already. */
export type FilesOnDisk = () => Promise<void> | undefined;

/** Makes what is at a path, a file or the names in a folder, survive a power cut. */
export async function syncPath(path: string): Promise<void> {
  // Opening and closing take less time than handing them to another thread.
  const file = openSync(path, constants.O_RDONLY);
  try {
    await syncFile(file);
  } finally {
    closeSync(file);
  }
}

const syncFile = promisify(fsync);

/** libuv has four threads. */
const MAX_SYNCS = 4;

/**
 * The same for several paths, except those that are not there any more. They are synced together: the file system
 * writes its journal once for all of them.
 */
export function syncAll(paths: readonly string[]): Promise<void> {
  return forEachConcurrently(MAX_SYNCS, paths, (path) => undefinedIfAbsent(syncPath(path)));
}

/** The same in one call, which blocks the thread until the disk has it. */
export function syncPathNow(path: string): void {
  const file = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
