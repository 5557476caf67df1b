import { createHash } from 'node:crypto';
import { lstat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { LRUCache } from 'lru-cache';
import { moveIntoPlace } from '../lib/rename-new.ts';
import { createKeyedMutex } from '../lib/concurrency.ts';
import type { SpooledFile } from '../protocol/job-api.ts';
import { type FolderEntry, type PathStatus, listBelow, statPath } from './folder-paths.ts';
import { atMost } from '../lib/lru-size.ts';

/** Why nothing was changed; `blocked`: something else than a file is, or would be, in the way. */
export type Unchanged = 'absent' | 'exists' | 'blocked' | 'full';

/** Files that front ends store for users: each user sees nothing but their own. */
export type UserDataStore = {
  /** The folder nothing of this user leaves. */
  folderFor(user: string): string;
  look(user: string, path: string): Promise<PathStatus>;
  list(
    user: string,
    path: string,
    how: { readonly depth: 'this folder' | 'all' },
  ): Promise<readonly FolderEntry[]>;
  /** The bytes of a file where they are not in a folder of this machine. */
  content?(user: string, path: string): Promise<Readable | undefined>;
  /** Stores a spooled file: whole and for good before this resolves. */
  put(
    user: string,
    path: string,
    file: SpooledFile,
    how: Overwrite,
  ): Promise<PathStatus | Unchanged>;
  move(user: string, from: string, to: string, how: Overwrite): Promise<PathStatus | Unchanged>;
  remove(user: string, path: string): Promise<Unchanged | undefined>;
};

export type Overwrite = { readonly overwrite: boolean };

/** Where a file is to be. */
type Target = { readonly path: string; readonly how: Overwrite };

type Usage = { bytes: number; entries: number };

/** Folders count: they cannot be removed by a client. */
export const MAX_USER_ENTRIES = 20_000;
const MAX_USAGES = 1000;
/** Other processes may have changed the files of a user since. */
const USAGE_VALID_MS = 60_000;
const FULL_DISK_CODES = new Set(['ENOSPC', 'EDQUOT']);

/** Files of users below one folder. */
export function createUserDataStore(options: {
  readonly root: string;
  readonly quotaBytes: number;
}): UserDataStore {
  const root = resolve(options.root);
  // Other processes may still change the files of the user meanwhile.
  const inUserOrder = createKeyedMutex();
  const usages = new LRUCache<string, Usage>({ ...atMost(MAX_USAGES), ttl: USAGE_VALID_MS });

  /** The folder nothing of this user leaves. */
  function folderFor(user: string): string {
    return join(root, folderNameOf(user));
  }

  async function countUsage(user: string): Promise<Usage> {
    const entries = await listBelow(folderFor(user), { depth: 'all' });
    const bytes = entries.reduce(
      (sum, { stats, isFolder }) => sum + (isFolder ? 0 : stats.size),
      0,
    );
    const usage = { bytes, entries: entries.length };
    usages.set(user, usage);
    return usage;
  }

  async function hasRoom(user: string, path: string, addedBytes: number): Promise<boolean> {
    const addedEntries = path.split('/').length;
    const fits = ({ bytes, entries }: Usage): boolean =>
      bytes + addedBytes <= options.quotaBytes && entries + addedEntries <= MAX_USER_ENTRIES;
    const known = usages.get(user);
    return (known !== undefined && fits(known)) || fits(await countUsage(user));
  }

  /** It may say too much, as all folders of a new path count as new: then the files are counted anew. */
  function addUsage(user: string, bytes: number, entries: number): void {
    const usage = usages.get(user);
    if (usage === undefined) return;
    usage.bytes += bytes;
    usage.entries += entries;
  }

  async function moveIn(user: string, file: Pick<SpooledFile, 'path'>, { path, how }: Target) {
    try {
      // Another process may have put a file there since this one looked.
      const outcome = await moveIntoPlace(file, path, how.overwrite ? 'replace' : 'keep');
      if (outcome === 'taken') return 'exists';
      return { kind: 'file' as const, path, stats: await lstat(path) };
    } catch (error) {
      // It may have come half-way.
      usages.delete(user);
      if (FULL_DISK_CODES.has(codeOf(error))) return 'full';
      throw error;
    }
  }

  /** Moves the spooled file to its place: whole and for good before this resolves. */
  async function put(
    user: string,
    path: string,
    file: SpooledFile,
    how: Overwrite,
  ): Promise<PathStatus | Unchanged> {
    const target = await statPath(folderFor(user), path);
    const refusal = refusalFor(target, how);
    if (refusal) return refusal;
    const addedBytes = file.sizeBytes - (target.kind === 'file' ? target.stats.size : 0);
    if (!(await hasRoom(user, path, addedBytes))) return 'full';
    addUsage(user, addedBytes, path.split('/').length);
    return moveIn(user, file, { path: target.path, how });
  }

  async function move(
    user: string,
    from: string,
    to: string,
    how: Overwrite,
  ): Promise<PathStatus | Unchanged> {
    const source = await statPath(folderFor(user), from);
    if (source.kind !== 'file') return source.kind === 'blocked' ? 'blocked' : 'absent';
    const target = await statPath(folderFor(user), to);
    const refusal = refusalFor(target, how);
    if (refusal) return refusal;
    if (!(await hasRoom(user, to, 0))) return 'full';
    addUsage(user, 0, to.split('/').length);
    try {
      return await moveIn(user, source, { path: target.path, how });
    } catch (error) {
      // Moved or removed at another process.
      if (codeOf(error) === 'ENOENT') return 'absent';
      throw error;
    }
  }

  async function remove(user: string, path: string): Promise<Unchanged | undefined> {
    const target = await statPath(folderFor(user), path);
    if (target.kind !== 'file') return target.kind === 'blocked' ? 'blocked' : 'absent';
    try {
      await unlink(target.path);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
      return 'absent';
    }
    addUsage(user, -target.stats.size, -1);
    return undefined;
  }

  return {
    folderFor,
    look: (user: string, path: string) => statPath(folderFor(user), path),
    list: (user: string, path: string, how: Parameters<typeof listBelow>[1]) =>
      listBelow(join(folderFor(user), path), how),
    put: (...to: Parameters<typeof put>) => inUserOrder(to[0], () => put(...to)),
    move: (...to: Parameters<typeof move>) => inUserOrder(to[0], () => move(...to)),
    remove: (user: string, path: string) => inUserOrder(user, () => remove(user, path)),
  };
}

/** Why a file must not be put there, if it must not. */
export function refusalFor(target: PathStatus, { overwrite }: Overwrite): Unchanged | undefined {
  if (target.kind === 'file') return overwrite ? undefined : 'exists';
  return target.kind === 'absent' ? undefined : 'blocked';
}

/** User ids are hex digests or plain words; any other id is hashed. */
export function folderNameOf(user: string): string {
  if (/^\w{1,64}$/.test(user)) return user;
  return `_${createHash('sha256').update(user).digest('hex')}`;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? '';
}
