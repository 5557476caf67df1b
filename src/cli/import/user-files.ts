import { rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createBucketUserData } from '../../files/bucket-user-data.ts';
import { type FileStats, type PathStatus, statPath } from '../../files/folder-paths.ts';
import { createUserDataStore } from '../../files/user-data-store.ts';
import { hashFile, hashOfStream } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { Objects } from '../../blobs/bucket/objects.ts';
import type { FoundFile } from './scan.ts';

/** The saved files of one user. Paths are relative to the user's folder. */
export type UserFiles = {
  look(path: string): Promise<PathStatus>;
  /** Resolves with true when the file at this path equals the found file. */
  isSame(path: string, there: FileStats, found: FoundFile): Promise<boolean>;
  /** Moves a copy of the found file to this path. */
  put(path: string, copy: SpooledFile, found: FoundFile): Promise<void>;
};

/**
 * Stores the files in the data directory. They keep their modification times, by which a later import recognises
 * them.
 */
export function userFilesInFolder(root: string, user: string): UserFiles {
  const folder = createUserDataStore({ root, quotaBytes: Infinity }).folderFor(user);
  return {
    look: (path) => statPath(folder, path),
    async isSame(_path, { size, mtimeMs }, { sizeBytes, modifiedAtMs }) {
      return size === sizeBytes && Math.round(mtimeMs) === modifiedAtMs;
    },
    async put(path, copy, { modifiedAtMs }) {
      const modified = new Date(modifiedAtMs);
      await utimes(copy.path, modified, modified);
      await moveIntoPlace(copy, join(folder, path));
    },
  };
}

/** Stores the files in a bucket. The time of an object is that of its upload, so files are compared by their bytes. */
export function userFilesInBucket(objects: Objects, user: string): UserFiles {
  const store = createBucketUserData({ objects, quotaBytes: Infinity });
  const keyOf = (path: string): string => `${store.folderFor(user)}/${path}`;
  return {
    look: (path) => store.look(user, path),
    async isSame(path, { size }, { path: source, sizeBytes }) {
      if (size !== sizeBytes) return false;
      const stream = await objects.open(keyOf(path));
      return stream !== undefined && (await hashOfStream(stream)) === (await hashFile(source)).hash;
    },
    async put(path, copy) {
      await objects.putFile(keyOf(path), copy);
      await rm(copy.path, { force: true });
    },
  };
}
