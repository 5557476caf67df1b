import { randomUUID } from 'node:crypto';
import { constants, mkdirSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import {
  copyFile,
  link,
  mkdir,
  open,
  readFile,
  readdir,
  rename,
  stat,
  unlink,
} from 'node:fs/promises';
import path from 'node:path';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { syncAll, syncPath } from '../../lib/durability.ts';
import type { AsideBlobs, BlobMarkers, BlobReads, BlobWrites, Blobs } from '../blobs.ts';
import { BLOB_HASH, hashOfAside, hexOf } from '../blob-paths.ts';

/** A quarter of the calls that Node's own 64 KiB need, and little memory for each slow reader. */
const READ_CHUNK_BYTES = 256 * 1024;

/** The number of digits of a hash that name its folder. */
const FOLDER_DIGITS = 2;

/**
 * Creates blobs in a folder: `<dir>/<2 hex>/<64 hex>`, complete or absent, never in part. Folders
 * are created when they are first needed. Incomplete bytes are in the spool folder.
 */
export function createFolderBlobs(dir: string): Blobs {
  const paths: Paths = {
    dir,
    markersDir: `${dir}-unrecorded`,
    of(hash) {
      const hex = hexOf(hash);
      return path.join(dir, hex.slice(0, FOLDER_DIGITS), hex);
    },
    markerOf: (hash) => path.join(paths.markersDir, hexOf(hash)),
  };
  return {
    ...createWrites(paths),
    ...createMarkers(paths),
    ...createReads(paths),
    ...createAside(`${dir}-leaving`, paths),
  };
}

type Paths = {
  readonly dir: string;
  /** An empty file in this folder is the marker of bytes that may have no record. */
  readonly markersDir: string;
  readonly of: (hash: string) => string;
  readonly markerOf: (hash: string) => string;
};

function createWrites(paths: Paths): BlobWrites {
  /** Existing bytes without a record may belong to another ledger, so they get no marker. */
  const prepare = (hash: string, sizeBytes: number | undefined): void => {
    if (sizeBytes === undefined) writeMarker(paths.markerOf(hash));
    mkdirSync(path.dirname(paths.of(hash)), { recursive: true });
  };
  return {
    async moveIntoPlace(file) {
      const target = paths.of(file.hash);
      prepare(file.hash, (await undefinedIfAbsent(stat(target)))?.size);
      await syncPath(file.path);
      await rename(file.path, target);
      await Promise.all([syncPath(path.dirname(target)), syncPath(paths.dir)]);
    },
    async put(file) {
      // These calls take less time than it would to leave them to another thread.
      const size = statSync(paths.of(file.hash), { throwIfNoEntry: false })?.size;
      if (size === file.sizeBytes) return unlinkSync(file.path);
      prepare(file.hash, size);
      renameSync(file.path, paths.of(file.hash));
    },
    async sync(hashes) {
      const files = hashes.map(paths.of);
      const folders = new Set(files.map((file) => path.dirname(file)));
      await syncAll([...files, ...folders, paths.dir]);
    },
    async remove(hash) {
      await remove(paths.of(hash));
      await remove(paths.markerOf(hash));
    },
    // Incomplete files are in the spool folder, which is emptied at each start.
    removeAbandoned: async () => {},
  };
}

function createMarkers({ markersDir, markerOf }: Paths): BlobMarkers {
  return {
    markRecorded: (hash) => remove(markerOf(hash)),
    markUnrecorded: async (hash) => writeMarker(markerOf(hash)),
    async *listUnrecorded() {
      for (const name of await readdir(markersDir).catch(() => [])) {
        const stats = await stat(path.join(markersDir, name)).catch(() => undefined);
        const hash = `blake3:${name}`;
        if (stats && BLOB_HASH.test(hash)) yield { hash, sinceMs: stats.mtimeMs };
      }
    },
  };
}

function createReads(paths: Paths): BlobReads {
  const { dir } = paths;
  return {
    sizeOf: async (hash) => (await undefinedIfAbsent(stat(paths.of(hash))))?.size,
    async open(hash, range) {
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
      const handle = await undefinedIfAbsent(open(paths.of(hash), flags));
      return handle?.createReadStream({ ...range, highWaterMark: READ_CHUNK_BYTES });
    },
    read: (hash) => undefinedIfAbsent(readFile(paths.of(hash))),
    async copyTo(hash, target) {
      const source = paths.of(hash);
      const copied = link(source, target).catch(() => copyFile(source, target));
      return (await undefinedIfAbsent(copied.then(() => true))) ?? false;
    },
    async *list() {
      for (const folder of await readdir(dir).catch(() => [])) {
        for (const name of await readdir(path.join(dir, folder)).catch(() => [])) {
          const hash = `blake3:${name}`;
          const stats = BLOB_HASH.test(hash) && (await stat(paths.of(hash)).catch(() => undefined));
          if (!stats) continue;
          const { size: sizeBytes, mtimeMs: modifiedAtMs, ctimeMs: placedAtMs } = stats;
          yield { hash, sizeBytes, modifiedAtMs, placedAtMs };
        }
      }
    },
  };
}

function createAside(asideDir: string, paths: Paths): AsideBlobs {
  return {
    async setAside(hash) {
      await mkdir(asideDir, { recursive: true, mode: 0o700 });
      const name = `${hexOf(hash)}.${randomUUID()}`;
      const moved = rename(paths.of(hash), path.join(asideDir, name)).then(() => name);
      return await undefinedIfAbsent(moved);
    },
    async putBack(name) {
      await undefinedIfAbsent(rename(path.join(asideDir, name), paths.of(hashOfAside(name))));
    },
    removeAside: (name) => remove(path.join(asideDir, name)),
    async *listAside() {
      for (const name of await readdir(asideDir).catch(() => [])) {
        const stats = await stat(path.join(asideDir, name)).catch(() => undefined);
        // The file was moved to this place after it was written.
        const sinceMs = stats && Math.max(stats.ctimeMs, stats.mtimeMs);
        if (sinceMs !== undefined) yield { name, hash: hashOfAside(name), sinceMs };
      }
    },
  };
}

function writeMarker(target: string): void {
  mkdirSync(path.dirname(target), { recursive: true, mode: 0o700 });
  writeFileSync(target, '');
}

async function remove(target: string): Promise<void> {
  await undefinedIfAbsent(unlink(target));
}
