import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import { writeFileAtomically } from '../../data-folder/bind-ledger.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { hashFile, hashOfStream } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import { filesBelow } from '../backup/copy.ts';

/** A file. Its path is the same in a data folder and in a bucket. */
export type PlacedFile = {
  readonly path: string;
  readonly sizeBytes: number;
  /** The hash of its bytes, if it is on record. */
  readonly hash?: string;
};

type SmallFile = 'folder.id' | 'ledger.id' | typeof UNFINISHED_COPY;

/** The place of the files of a ledger: a data folder or a bucket. */
export type FilesPlace = {
  /** The name in messages: a flag and its value. */
  readonly name: string;
  /** Resolves with true when the place belongs to a ledger, which may have no files yet. */
  isTaken(): Promise<boolean>;
  list(): Promise<readonly PlacedFile[]>;
  /** Calls `work` with the bytes as a local file, or with `undefined` when the file does not exist. */
  withFile<T>(path: string, work: (file: SpooledFile | undefined) => Promise<T>): Promise<T>;
  /** Reads the file and returns its hash; `undefined` when it does not exist. */
  hashOf(path: string): Promise<string | undefined>;
  /** Stores a file completely or not at all. A data folder moves the given file, a bucket copies it. */
  put(path: string, file: SpooledFile): Promise<void>;
  remove(path: string): Promise<void>;
  readSmall(name: SmallFile): Promise<string | undefined>;
  writeSmall(name: SmallFile, text: string): Promise<void>;
};

/** The folders with files of users. They have the same names in a data folder and in a bucket. */
const FOLDERS = ['blobs', 'blobs-unrecorded', 'blobs-leaving', 'userdata'] as const;

/** Returns true for the paths in a data folder whose files are in the bucket, when there is one. */
export function isInBucket(path: string): boolean {
  return FOLDERS.some((folder) => path.startsWith(`${folder}/`));
}

/** The folder for files that are being copied out of a bucket. */
const COPYING_FOLDER = 'copying';

/** Returns the files in a data folder as a place. */
export function placeInFolder(root: string): FilesPlace {
  const pathOf = (path: string): string => join(root, ...path.split('/'));
  return {
    name: `--data-dir ${root}`,
    // A data folder belongs to its ledger also while its files are in a bucket.
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
      const found = await undefinedIfAbsent(hashFile(pathOf(path)));
      return await work(found && { path: pathOf(path), ...found });
    },
    hashOf: async (path) => (await undefinedIfAbsent(hashFile(pathOf(path))))?.hash,
    put: async (path, file) => void (await moveIntoPlace(file, pathOf(path))),
    remove: (path) => rm(pathOf(path), { force: true }),
    async readSmall(name) {
      return existsSync(join(root, name)) ? readFileSync(join(root, name), 'utf8') : undefined;
    },
    writeSmall: async (name, text) => writeFileAtomically(join(root, name), text),
  };
}

/** Returns the files in a bucket as a place. Temporary files go into the data folder. */
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

/** Removes the temporary files of a copy. */
export function removeCopying(dataDir: string): void {
  rmSync(join(dataDir, COPYING_FOLDER), { recursive: true, force: true });
}

/** Returns the key as a path. Throws when the path would leave the folder: other programs may write into a bucket. */
function plainPath(key: string): string {
  const isPlain = key.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
  if (isPlain && !/[\\\0]/.test(key)) return key;
  throw new Error(`the bucket has an object that cannot be a file: ${JSON.stringify(key)}`);
}
