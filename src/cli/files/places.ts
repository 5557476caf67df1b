import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import { writeFileAtomically } from '../../data-folder/bind-ledger.ts';
import { hashFile, hashOfStream } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import { filesBelow, undefinedIfAbsent } from '../backup/copy.ts';

/** A file by its path, which is the same in a folder and in a bucket. */
export type PlacedFile = {
  readonly path: string;
  readonly sizeBytes: number;
  /** Of its bytes, where that is on record. */
  readonly hash?: string;
};

type SmallFile = 'folder.id' | 'ledger.id' | typeof UNFINISHED_COPY;

/** Where the files of a ledger are: a data folder, or a bucket. */
export type FilesPlace = {
  /** As an operator names it. */
  readonly name: string;
  /** It belongs to a ledger, whether that has files or not. */
  isTaken(): Promise<boolean>;
  list(): Promise<readonly PlacedFile[]>;
  /** Works with the bytes as a file on this machine; `undefined` is given when there are none. */
  withFile<T>(path: string, work: (file: SpooledFile | undefined) => Promise<T>): Promise<T>;
  /** The hash of the bytes, which are read; `undefined`: there are none. */
  hashOf(path: string): Promise<string | undefined>;
  /** Puts a file there as a whole or not at all; a folder takes over the file itself. */
  put(path: string, file: SpooledFile): Promise<void>;
  remove(path: string): Promise<void>;
  readSmall(name: SmallFile): Promise<string | undefined>;
  writeSmall(name: SmallFile, text: string): Promise<void>;
};

/** The folders of a data folder and of a bucket that have files of users. */
const FOLDERS = ['blobs', 'blobs-unrecorded', 'blobs-leaving', 'userdata'] as const;

/** Of the paths in a data folder: those that are in a bucket instead. */
export function isInBucket(path: string): boolean {
  return FOLDERS.some((folder) => path.startsWith(`${folder}/`));
}

/** For files on their way into a folder, or out of a bucket. */
const COPYING_FOLDER = 'copying';

export function placeInFolder(root: string): FilesPlace {
  const pathOf = (path: string): string => join(root, ...path.split('/'));
  return {
    name: `--data-dir ${root}`,
    // A data folder is that of its ledger, wherever the files are.
    isTaken: async () => false,
    async list() {
      const files: PlacedFile[] = [];
      for (const folder of FOLDERS)
        for (const below of await filesBelow(join(root, folder))) {
          const path = [folder, ...below.split(sep)].join('/');
          files.push({ path, sizeBytes: (await lstat(pathOf(path))).size });
        }
      return files;
    },
    async withFile(path, work) {
      const found = await hashFile(pathOf(path)).catch(undefinedIfAbsent);
      return await work(found && { path: pathOf(path), ...found });
    },
    hashOf: async (path) => (await hashFile(pathOf(path)).catch(undefinedIfAbsent))?.hash,
    put: async (path, file) => void (await moveIntoPlace(file, pathOf(path))),
    remove: (path) => rm(pathOf(path), { force: true }),
    async readSmall(name) {
      return existsSync(join(root, name)) ? readFileSync(join(root, name), 'utf8') : undefined;
    },
    writeSmall: async (name, text) => writeFileAtomically(join(root, name), text),
  };
}

export function placeInBucket(
  { objects, identity }: Pick<OpenedBucket, 'objects' | 'identity'>,
  dataDir: string,
): FilesPlace {
  const copying = join(dataDir, COPYING_FOLDER);
  return {
    name: `--files ${identity.url}`,
    isTaken: async () => (await objects.text('folder.id')) !== undefined,
    async list() {
      const files: PlacedFile[] = [];
      for (const folder of FOLDERS)
        for await (const { key, sizeBytes } of objects.list(`${folder}/`))
          if (!key.endsWith('/')) files.push({ path: plainPath(key), sizeBytes });
      return files;
    },
    async withFile(path, work) {
      const stream = await objects.open(path);
      if (stream === undefined) return await work(undefined);
      mkdirSync(copying, { recursive: true, mode: 0o700 });
      const local = join(copying, randomUUID());
      try {
        await pipeline(stream, createWriteStream(local, { flags: 'wx', mode: 0o600 }));
        return await work({ path: local, ...(await hashFile(local)) });
      } finally {
        await rm(local, { force: true });
      }
    },
    async hashOf(path) {
      const stream = await objects.open(path);
      return stream && (await hashOfStream(stream));
    },
    put: (path, file) => objects.putFile(path, file),
    remove: (path) => objects.remove(path),
    readSmall: (name) => objects.text(name),
    writeSmall: async (name, text) => void (await objects.put(name, Buffer.from(text))),
  };
}

/** Removes what an interrupted copy has left beside its files. */
export function removeCopying(dataDir: string): void {
  rmSync(join(dataDir, COPYING_FOLDER), { recursive: true, force: true });
}

/** Other programs may write into a bucket: no key leads out of the folder. */
function plainPath(key: string): string {
  const isPlain = key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (isPlain && !/[\\\0]/.test(key)) return key;
  throw new Error(`the bucket has an object that cannot be a file: ${JSON.stringify(key)}`);
}
