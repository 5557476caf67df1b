import { closeSync, constants, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** A write with `fsync` survives a power cut; a `transient` one survives only `kill -9`. */
export type Durability = 'fsync' | 'transient';

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
