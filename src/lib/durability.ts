import { closeSync, constants, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';

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
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
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
