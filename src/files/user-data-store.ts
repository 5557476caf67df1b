import { createHash } from 'node:crypto';
import { lstat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { undefinedIfAbsent } from '../lib/absent-file.ts';
import { moveIntoPlace } from '../lib/rename-new.ts';
import { createKeyedMutex } from '../lib/concurrency.ts';
import { isStorageFull } from '../lib/storage-errors.ts';
import type { SpooledFile } from '../protocol/job-api.ts';
import { type FolderEntry, type PathStatus, listBelow, statPath } from './folder-paths.ts';

/** Why nothing was changed. `blocked`: something that is not a file is, or would be, in the way. */
export type Unchanged = 'absent' | 'exists' | 'blocked' | 'full';

type Written = Promise<PathStatus | Unchanged>;

/** Files that front ends store for users. Each user sees only their own. */
export type UserDataStore = UserDataReader & {
  /** Stores a spooled file. It is complete and durable when this resolves. */
  put(user: string, path: string, file: SpooledFile, how: Overwrite): Written;
  move(user: string, from: string, to: string, how: Overwrite): Written;
  remove(user: string, path: string): Promise<Unchanged | undefined>;
};

type UserDataReader = {
  /** The folder that holds all files of this user. */
  folderFor(user: string): string;
  look(user: string, path: string): Promise<PathStatus>;
  list(
    user: string,
    path: string,
    how: { readonly depth: 'this folder' | 'all' },
  ): Promise<readonly FolderEntry[]>;
  /** Returns the bytes of a file that is not in a folder of this machine. */
  content?(user: string, path: string): Promise<Readable | undefined>;
};

/**
 * The place of the files. Paths are those that `look` returned; each one was checked just before.
 */
export type UserDataPlace = UserDataReader & {
  count(user: string): Promise<{ readonly bytes: number; readonly entries: number }>;
  /** Returns the maximum number of entries that a new file with this path adds. */
  entriesOf(path: string): number;
  put(file: SpooledFile, to: string, how: Overwrite): Written;
  move(from: string, to: string, how: Overwrite): Written;
  /** `false`: the file was gone. */
  remove(path: string): Promise<boolean>;
};

type Overwrite = { readonly overwrite: boolean };

/** The maximum number of entries of one user. Folders count, since a client cannot remove them. */
const MAX_USER_ENTRIES = 20_000;

/** Stores files of users in one place, within the quota of each user. */
export function storeIn(place: UserDataPlace, quotaBytes: number): UserDataStore {
  // Changes of one user are made one after the other. Other processes may still change the files
  // meanwhile.
  const inUserOrder = createKeyedMutex();
  const quota = { place, quotaBytes };
  return {
    ...place,
    put: (user, path, file, how) =>
      inUserOrder(user, () =>
        write(quota, { user, path, how, bytes: file.sizeBytes }, (to) => place.put(file, to, how)),
      ),
    move: (user, from, to, how) =>
      inUserOrder(user, async () => {
        const source = await place.look(user, from);
        if (source.kind !== 'file') return noFile(source);
        return write(quota, { user, path: to, how, bytes: 0 }, (path) =>
          place.move(source.path, path, how),
        );
      }),
    remove: (user, path) =>
      inUserOrder(user, async () => {
        const target = await place.look(user, path);
        if (target.kind !== 'file') return noFile(target);
        return (await place.remove(target.path)) ? undefined : 'absent';
      }),
  };
}

type Quota = { readonly place: UserDataPlace; readonly quotaBytes: number };

type Write = {
  readonly user: string;
  readonly path: string;
  readonly how: Overwrite;
  readonly bytes: number;
};

/** Writes the file if nothing is in the way and there is space. */
async function write(
  { place, quotaBytes }: Quota,
  { user, path, how, bytes }: Write,
  act: (to: string) => Written,
): Written {
  const target = await place.look(user, path);
  const refusal = refusalFor(target, how);
  if (refusal) return refusal;
  const replacedBytes = target.kind === 'file' ? target.stats.size : 0;
  // Counted each time: other processes may change the files.
  const used = await place.count(user);
  const isFull =
    used.bytes + bytes - replacedBytes > quotaBytes ||
    used.entries + place.entriesOf(path) > MAX_USER_ENTRIES;
  if (isFull) return 'full';
  try {
    return await act(target.path);
  } catch (error) {
    if (isStorageFull(error)) return 'full';
    throw error;
  }
}

/** Stores files of users below one folder. */
export function createUserDataStore(options: {
  readonly root: string;
  readonly quotaBytes: number;
}): UserDataStore {
  const root = resolve(options.root);
  const folderFor = (user: string): string => join(root, folderNameOf(user));
  const place: UserDataPlace = {
    folderFor,
    look: (user, path) => statPath(folderFor(user), path),
    list: (user, path, how) => listBelow(join(folderFor(user), path), how),
    async count(user) {
      const entries = await listBelow(folderFor(user), { depth: 'all' });
      const sizes = entries.map(({ stats, isFolder }) => (isFolder ? 0 : stats.size));
      return { bytes: sizes.reduce((sum, size) => sum + size, 0), entries: entries.length };
    },
    entriesOf: (path) => path.split('/').length,
    put: moveInto,
    // Another process has moved or removed the file.
    move: async (path, to, how) =>
      (await undefinedIfAbsent(moveInto({ path }, to, how))) ?? 'absent',
    remove: async (path) => (await undefinedIfAbsent(unlink(path).then(() => true))) ?? false,
  };
  return storeIn(place, options.quotaBytes);
}

async function moveInto(
  file: { readonly path: string },
  path: string,
  { overwrite }: Overwrite,
): Written {
  // Another process may have put a file there since the check.
  const outcome = await moveIntoPlace(file, path, overwrite ? 'replace' : 'keep');
  return outcome === 'taken' ? 'exists' : { kind: 'file', path, stats: await lstat(path) };
}

function noFile({ kind }: PathStatus): Unchanged {
  return kind === 'blocked' ? 'blocked' : 'absent';
}

/** Returns the reason why a file must not be put there, if there is one. */
function refusalFor(target: PathStatus, { overwrite }: Overwrite): Unchanged | undefined {
  if (target.kind === 'file') return overwrite ? undefined : 'exists';
  return target.kind === 'absent' ? undefined : 'blocked';
}

/**
 * Returns the folder name of a user. Ids are hex digests or plain words; any other id is hashed.
 */
export function folderNameOf(user: string): string {
  if (/^\w{1,64}$/.test(user)) return user;
  return `_${createHash('sha256').update(user).digest('hex')}`;
}
