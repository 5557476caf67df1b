import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { lstat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import { writeFileAtomically } from '../../data-folder/bind-ledger.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { OpenedBucket } from '../../blobs/bucket/open-bucket.ts';
import { filesBelow } from './copy.ts';

type Id = 'folder.id' | 'ledger.id';

/** A file that a front end has saved, by its path below `userdata`. */
export type SavedFile = { readonly path: string; readonly modifiedAtMs: number };

/** The place of the files of a ledger: a data folder or a bucket. Paths are the same in both. */
export type FilesPlace = {
  open(path: string): Promise<Readable | undefined>;
  /** Lists the files below `userdata`. */
  saved(): AsyncIterable<SavedFile>;
  readId(name: Id): Promise<string | undefined>;
  /** Prepares an empty place for a restore. No server starts on a bucket before `finish`. Throws when it is in use. */
  begin(): Promise<void>;
  /** Stores a file completely or not at all. A data folder moves the given file. */
  put(path: string, file: SpooledFile, modifiedAtMs?: number): Promise<void>;
  writeId(name: Id, id: string): Promise<void>;
  finish(): Promise<void>;
};

/** Returns the files in a data folder as a place. For a restore, the folder is a new one. */
export function placeInFolder(root: string): FilesPlace {
  const pathOf = (path: string): string => join(root, ...path.split('/'));
  return {
    async open(path) {
      const stats = await undefinedIfAbsent(lstat(pathOf(path)));
      return stats && createReadStream(pathOf(path));
    },
    async *saved() {
      for (const path of await filesBelow(join(root, 'userdata'))) {
        const stats = await undefinedIfAbsent(lstat(pathOf(`userdata/${path}`)));
        if (stats) yield { path, modifiedAtMs: Math.round(stats.mtimeMs) };
      }
    },
    async readId(name) {
      return existsSync(join(root, name)) ? readFileSync(join(root, name), 'utf8') : undefined;
    },
    begin: async () => {},
    async put(path, file, modifiedAtMs) {
      if (modifiedAtMs !== undefined)
        await utimes(file.path, modifiedAtMs / 1000, modifiedAtMs / 1000);
      await moveIntoPlace(file, pathOf(path));
    },
    writeId: async (name, id) => writeFileAtomically(join(root, name), id),
    finish: async () => {},
  };
}

const FOLDERS = ['blobs/', 'blobs-unrecorded/', 'blobs-leaving/', 'userdata/'] as const;

/** Returns the files in a bucket as a place. */
export function placeInBucket({ objects, identity: { url } }: OpenedBucket): FilesPlace {
  async function* keys(): AsyncGenerator<string> {
    for (const folder of FOLDERS) for await (const { key } of objects.list(folder)) yield key;
  }
  return {
    open: (path) => objects.open(path),
    async *saved() {
      for await (const { key, modifiedAtMs } of objects.list('userdata/'))
        if (!key.endsWith('/')) yield { path: key.slice('userdata/'.length), modifiedAtMs };
    },
    readId: (name) => objects.text(name),
    async begin() {
      const isUnfinished = (await objects.text(UNFINISHED_COPY)) !== undefined;
      if (!isUnfinished && (await objects.text('folder.id')) !== undefined)
        throw new Error(`--files ${url} belongs to a ledger already: use another PREFIX`);
      for await (const key of keys()) {
        if (!isUnfinished) throw new Error(`--files ${url} is not empty: it has ${key}`);
        // Everything here is from a restore that was interrupted, as the place was empty before.
        await objects.remove(key);
      }
      await objects.put(UNFINISHED_COPY, Buffer.from('restore'));
    },
    put: (path, file) => objects.putFile(path, file),
    writeId: async (name, id) => void (await objects.put(name, Buffer.from(id))),
    finish: () => objects.remove(UNFINISHED_COPY),
  };
}
