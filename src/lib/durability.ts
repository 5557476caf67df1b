import { closeSync, constants, fsync, fsyncSync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { undefinedIfAbsent } from './absent-file.ts';
import { forEachConcurrently } from './concurrency.ts';

/**
 * `fsync`: the write survives a power cut when it resolves. `soon`: it survives `kill -9` then, and
 * a power cut after at most `SOON_MS` and the time of a sync.
 */
export type Durability = 'fsync' | 'soon';

/** `none`: the file need not survive a power cut. */
export type FileDurability = 'fsync' | 'none';

/** A power cut loses writes with the durability `soon` that are younger than this. */
export const SOON_MS = 100;

/**
 * Resolves when the files that a record names survive a power cut; `undefined` when they already
 * do.
 */
export type FilesOnDisk = () => Promise<void> | undefined;

/** Makes the content at a path survive a power cut: a file, or the names in a folder. */
export async function syncPath(path: string): Promise<void> {
  // To open and close a file takes less time than to pass that to another thread.
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
 * Makes several paths survive a power cut, except those that do not exist any more. They are synced
 * together, so that the file system writes its journal once for all of them.
 */
export function syncAll(paths: readonly string[]): Promise<void> {
  return forEachConcurrently(MAX_SYNCS, paths, (path) => undefinedIfAbsent(syncPath(path)));
}

/** Syncs a path in one call, which blocks the thread until the disk has the content. */
export function syncPathNow(path: string): void {
  const file = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
