import { rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createBucketUserData } from '../../files/bucket-user-data.ts';
import { type FileStats, type PathStatus, statPath } from '../../files/folder-paths.ts';
import { createUserDataStore } from '../../files/user-data-store.ts';
import { hashFile, hashOfStream } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { Objects } from '../../upstreams/bucket/objects.ts';
import type { FoundFile } from './scan.ts';

/** The saved files of one user, to which others are added; paths are below the user's folder. */
export type UserFiles = {
  look(path: string): Promise<PathStatus>;
  /** True when the file that is at the path is the one that was found. */
  isSame(path: string, there: FileStats, found: FoundFile): Promise<boolean>;
  /** Takes over a copy of the file that was found. */
  put(path: string, copy: SpooledFile, found: FoundFile): Promise<void>;
};

/** The files are in the data directory, with the times they had. */
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

/** An object has the time of its upload, so that only its bytes can tell whether it is the same. */
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
