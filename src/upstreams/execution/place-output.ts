import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { syncAll } from '../../lib/durability.ts';
import { hashOf } from '../../lib/hash.ts';
import { createBlobPaths } from '../blob-paths.ts';

/** The part of the blob store that writes outputs. */
export type OutputPlacer = {
  /** Puts bytes into place, complete, and returns their hash. */
  place(this: void, bytes: Uint8Array): string | Promise<string>;
  /**
   * Makes all bytes that were put into place since the last call, and their names, survive a power
   * cut.
   */
  sync(this: void): Promise<void>;
};

/**
 * Writes blobs in a worker thread. The calls block only this thread, which has no other work, and
 * need no turn of an event loop. While the disk works for one job, the next one may run.
 */
export function createOutputPlacer(dirs: {
  readonly spoolDir: string;
  readonly blobsDir: string;
}): Omit<OutputPlacer, 'place'> & { place(this: void, bytes: Uint8Array): string } {
  const { dir, markersDir, pathOf, markerOf } = createBlobPaths(dirs.blobsDir);
  const durableFolders = new Set<string>();
  const unsynced = new Set<string>();
  const writeMarker = (hash: string): void =>
    inFolder(markersDir, () => writeFileSync(markerOf(hash), ''), { mode: 0o700 });
  const moveIntoPlace = (spooled: string, hash: string): void => {
    const target = pathOf(hash);
    // Existing bytes without a record may belong to another ledger, so this one must never remove
    // them.
    const isNew = !existsSync(target);
    if (isNew) writeMarker(hash);
    inFolder(path.dirname(target), () => renameSync(spooled, target));
    // The main thread removes the marker when it records the same bytes or removes their record.
    if (isNew && !existsSync(markerOf(hash))) writeMarker(hash);
  };
  const write = (hash: string, bytes: Uint8Array): void => {
    const spooled = path.join(dirs.spoolDir, randomUUID());
    try {
      writeFileSync(spooled, bytes, { flag: 'wx' });
      moveIntoPlace(spooled, hash);
    } catch (error) {
      rmSync(spooled, { force: true });
      throw error;
    }
  };
  return {
    place(bytes) {
      const hash = hashOf(bytes);
      const found = statSync(pathOf(hash), { throwIfNoEntry: false });
      if (found?.size !== bytes.byteLength) write(hash, bytes);
      // Existing bytes are synced too: those of another thread may not be durable yet.
      unsynced.add(hash);
      return hash;
    },
    async sync() {
      const paths = [...unsynced].map(pathOf);
      unsynced.clear();
      const changed = new Set(paths.map((file) => path.dirname(file)));
      const isNew = [...changed].some((folder) => !durableFolders.has(folder));
      await syncAll([...paths, ...changed, ...(isNew ? [dir] : [])]);
      for (const folder of changed) durableFolders.add(folder);
    },
  };
}

/** Runs `act` in a folder, which is created if it does not exist. */
function inFolder(folder: string, act: () => void, options: { readonly mode?: number } = {}): void {
  try {
    act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    mkdirSync(folder, { recursive: true, ...options });
    act();
  }
}
