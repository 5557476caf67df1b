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
import type { Blobs } from '../blobs.ts';
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
  /** An empty file in this folder is the marker of bytes that may have no record. */
  const markersDir = `${dir}-unrecorded`;
  const markerOf = (hash: string): string => path.join(markersDir, hexOf(hash));
  const pathOf = (hash: string): string => {
    const hex = hexOf(hash);
    return path.join(dir, hex.slice(0, FOLDER_DIGITS), hex);
  };
  const markRecorded = (hash: string): Promise<void> => remove(markerOf(hash));
  const sizeOf = async (hash: string): Promise<number | undefined> =>
    (await undefinedIfAbsent(stat(pathOf(hash))))?.size;
  /** Existing bytes without a record may belong to another ledger, so they get no marker. */
  const prepare = (hash: string, isNew: boolean): void => {
    if (isNew) writeMarker(markerOf(hash));
    mkdirSync(path.dirname(pathOf(hash)), { recursive: true });
  };
  return {
    markRecorded,
    markUnrecorded: async (hash) => writeMarker(markerOf(hash)),
    async moveIntoPlace(file) {
      const target = pathOf(file.hash);
      prepare(file.hash, (await sizeOf(file.hash)) === undefined);
      await syncPath(file.path);
      await rename(file.path, target);
      await Promise.all([syncPath(path.dirname(target)), syncPath(dir)]);
    },
    async put(file) {
      // These calls take less time than it would to leave them to another thread.
      const size = statSync(pathOf(file.hash), { throwIfNoEntry: false })?.size;
      if (size === file.sizeBytes) return unlinkSync(file.path);
      prepare(file.hash, size === undefined);
      renameSync(file.path, pathOf(file.hash));
    },
    async sync(hashes) {
      const paths = hashes.map(pathOf);
      const folders = new Set(paths.map((file) => path.dirname(file)));
      await syncAll([...paths, ...folders, dir]);
    },
    sizeOf,
    async open(hash, range) {
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW;
      const handle = await undefinedIfAbsent(open(pathOf(hash), flags));
      return handle?.createReadStream({ ...range, highWaterMark: READ_CHUNK_BYTES });
    },
    read: (hash) => undefinedIfAbsent(readFile(pathOf(hash))),
    async copyTo(hash, target) {
      const source = pathOf(hash);
      const copied = link(source, target).catch(() => copyFile(source, target));
      return (await undefinedIfAbsent(copied.then(() => true))) ?? false;
    },
    async remove(hash) {
      await remove(pathOf(hash));
      await markRecorded(hash);
    },
    async *listUnrecorded() {
      for (const name of await readdir(markersDir).catch(() => [])) {
        const stats = await stat(path.join(markersDir, name)).catch(() => undefined);
        const hash = `blake3:${name}`;
        if (stats && BLOB_HASH.test(hash)) yield { hash, sinceMs: stats.mtimeMs };
      }
    },
    async *list() {
      for (const folder of await readdir(dir).catch(() => [])) {
        for (const name of await readdir(path.join(dir, folder)).catch(() => [])) {
          const hash = `blake3:${name}`;
          const stats = BLOB_HASH.test(hash) && (await stat(pathOf(hash)).catch(() => undefined));
          if (!stats) continue;
          const { size: sizeBytes, mtimeMs: modifiedAtMs, ctimeMs: placedAtMs } = stats;
          yield { hash, sizeBytes, modifiedAtMs, placedAtMs };
        }
      }
    },
    ...createAside(`${dir}-leaving`, pathOf),
    // Incomplete files are in the spool folder, which is emptied at each start.
    removeAbandoned: async () => {},
  };
}

type Aside = Pick<Blobs, 'setAside' | 'putBack' | 'removeAside' | 'listAside'>;

function createAside(asideDir: string, pathOf: (hash: string) => string): Aside {
  return {
    async setAside(hash) {
      await mkdir(asideDir, { recursive: true, mode: 0o700 });
      const name = `${hexOf(hash)}.${randomUUID()}`;
      const moved = rename(pathOf(hash), path.join(asideDir, name)).then(() => name);
      return await undefinedIfAbsent(moved);
    },
    async putBack(name) {
      await undefinedIfAbsent(rename(path.join(asideDir, name), pathOf(hashOfAside(name))));
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
