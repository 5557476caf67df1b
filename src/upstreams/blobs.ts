import { constants, existsSync } from 'node:fs';
import { syncPath } from '../lib/durability.ts';
import { access, mkdir, open, readdir, rename, stat, unlink, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { BLOB_HASH, createBlobPaths } from './blob-paths.ts';
import type { SpooledFile } from '../protocol/job-api.ts';

/** Content-addressed files: `<dir>/<2 hex>/<64 hex>`, complete or absent, never half-written. */
export type Blobs = ReturnType<typeof createBlobs>;

/** Opens the store. Folders are created when they are first needed. */
export function createBlobs(dir: string) {
  const { markersDir, pathOf, markerOf } = createBlobPaths(dir);
  const markRecorded = (hash: string): Promise<void> => removeIfThere(markerOf(hash));
  return {
    /** For worker threads, which put their outputs into place themselves. */
    blobsDir: path.resolve(dir),
    pathOf,
    /** The ledger has a record of these bytes. */
    markRecorded,
    /**
     * Call before the last record of these bytes is removed; then call `remove` or `markRecorded`.
     */
    markUnrecorded: (hash: string): Promise<void> => writeMarker(markerOf(hash)),
    /**
     * Moves a spooled file to its final path; it is durable once this resolves. Until `markRecorded`
     * a marker file says that these bytes may have no record; a crash leaves the marker.
     */
    async moveIntoPlace(file: SpooledFile): Promise<void> {
      const target = pathOf(file.hash);
      // Existing bytes without a record may belong to another ledger: this one must never remove
      // them.
      if (!(await exists(target))) await writeMarker(markerOf(file.hash));
      await mkdir(path.dirname(target), { recursive: true });
      await syncPath(file.path);
      await rename(file.path, target);
      await syncPath(path.dirname(target));
      await syncPath(dir);
    },
    /** Makes bytes that worker threads have put into place survive a power cut, unless they are gone. */
    async sync(hashes: readonly string[]): Promise<void> {
      const paths = hashes.map(pathOf);
      const folders = new Set(paths.map((file) => path.dirname(file)));
      for (const target of [...paths, ...folders, dir]) await syncIfThere(target);
    },
    /** True when a worker thread has put these bytes into place and nothing has removed them since. */
    isInPlace: (hash: string): boolean | Promise<boolean> => existsSync(pathOf(hash)),
    async open(hash: string): Promise<FileHandle | undefined> {
      try {
        return await open(pathOf(hash), constants.O_RDONLY | constants.O_NOFOLLOW);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async remove(hash: string): Promise<void> {
      await removeIfThere(pathOf(hash));
      await markRecorded(hash);
    },
    /** Hashes with a marker, that is bytes which may have no record, and since when. */
    async *listUnrecorded(): AsyncIterable<{ readonly hash: string; readonly sinceMs: number }> {
      for (const name of await readdir(markersDir).catch(() => [])) {
        const stats = await stat(path.join(markersDir, name)).catch(() => undefined);
        const hash = `blake3:${name}`;
        if (stats && BLOB_HASH.test(hash)) yield { hash, sinceMs: stats.mtimeMs };
      }
    },
  };
}

async function syncIfThere(target: string): Promise<void> {
  try {
    await syncPath(target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

async function writeMarker(target: string): Promise<void> {
  try {
    await writeFile(target, '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
    await writeFile(target, '');
  }
}

/** In one call, where `rm` takes three. */
async function removeIfThere(target: string): Promise<void> {
  try {
    await unlink(target);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function exists(target: string): Promise<boolean> {
  return access(target).then(
    () => true,
    () => false,
  );
}
