import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { SpooledFile } from '../protocol/job-api.ts';
import type { FileStats, FolderEntry, PathStatus } from './folder-paths.ts';
import {
  type Unchanged,
  type UserDataPlace,
  type UserDataStore,
  folderNameOf,
  storeIn,
} from './user-data-store.ts';

/** The objects of a bucket, by key. */
export type ObjectStore = {
  stat(key: string): Promise<StoredObject | undefined>;
  list(prefix: string): AsyncIterable<StoredObject & { readonly key: string }>;
  /** `onlyNew`: returns `false` when an object with this key exists. */
  put(key: string, bytes: Uint8Array, how: { readonly onlyNew: boolean }): Promise<boolean>;
  putFile(key: string, file: SpooledFile): Promise<void>;
  /** `false`: there is no such object. */
  copy(from: string, to: string): Promise<boolean>;
  remove(key: string): Promise<void>;
  open(key: string): Promise<Readable | undefined>;
};

type StoredObject = { readonly sizeBytes: number; readonly modifiedAtMs: number };

const ROOT = 'userdata/';
/** Larger files are put without the condition that the key is new: that was checked just before. */
const CONDITIONAL_BYTES = 4 * 2 ** 20;

/** Files of users in a bucket. A folder exists as long as a file is in it. */
export function createBucketUserData({
  objects,
  quotaBytes,
}: {
  readonly objects: ObjectStore;
  readonly quotaBytes: number;
}): UserDataStore {
  const place: UserDataPlace = {
    folderFor,
    look: (user, path) => look(objects, user, path),
    content: (user, path) => objects.open(keyOf(user, path)),
    list: (user, path, { depth }) => list(objects, prefixOf(user, path), depth),
    count: (user) => count(objects, prefixOf(user, '')),
    entriesOf: () => 1,
    async put(file, key, { overwrite }) {
      if (file.sizeBytes > CONDITIONAL_BYTES) await objects.putFile(key, file);
      else if (!(await objects.put(key, await readFile(file.path), { onlyNew: !overwrite })))
        return 'exists';
      return await fileAt(objects, key);
    },
    async move(from, to) {
      if (from === to) return await fileAt(objects, to);
      // The copy comes first, so a crash in between leaves both files.
      if (!(await objects.copy(from, to))) return 'absent';
      await objects.remove(from);
      return await fileAt(objects, to);
    },
    remove: (key) => objects.remove(key).then(() => true),
  };
  return storeIn(place, quotaBytes);
}

function folderFor(user: string): string {
  return `${ROOT}${folderNameOf(user)}`;
}

function keyOf(user: string, path: string): string {
  return `${folderFor(user)}/${path}`;
}

/** The prefix of the keys below a folder. The path of a user's own folder is empty. */
function prefixOf(user: string, path: string): string {
  return path === '' ? `${folderFor(user)}/` : `${keyOf(user, path)}/`;
}

async function look(objects: ObjectStore, user: string, path: string): Promise<PathStatus> {
  const key = path === '' ? folderFor(user) : keyOf(user, path);
  const found = path === '' ? undefined : await objects.stat(key);
  if (found) return { kind: 'file', path: key, stats: statsOf(found) };
  if (await hasObjects(objects, `${key}/`)) return { kind: 'folder', path: key };
  const parents = path.split('/').slice(0, -1);
  for (let depth = 1; depth <= parents.length; depth += 1) {
    const parent = keyOf(user, parents.slice(0, depth).join('/'));
    if (await objects.stat(parent)) return { kind: 'blocked', path: key };
  }
  return { kind: 'absent', path: key };
}

async function hasObjects(objects: ObjectStore, prefix: string): Promise<boolean> {
  for await (const _object of objects.list(prefix)) return true;
  return false;
}

async function fileAt(objects: ObjectStore, key: string): Promise<PathStatus | Unchanged> {
  const found = await objects.stat(key);
  return found ? { kind: 'file', path: key, stats: statsOf(found) } : 'absent';
}

async function list(
  objects: ObjectStore,
  prefix: string,
  depth: 'this folder' | 'all',
): Promise<readonly FolderEntry[]> {
  const entries = new Map<string, FolderEntry>();
  for await (const { key, ...found } of objects.list(prefix)) {
    const below = key.slice(prefix.length);
    if (below === '' || below.endsWith('/')) continue;
    for (const entry of entriesOf(below, statsOf(found)))
      if (depth === 'all' || !entry.path.includes('/')) entries.set(entry.path, entry);
  }
  return [...entries.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

async function count(
  objects: ObjectStore,
  prefix: string,
): Promise<{ readonly bytes: number; readonly entries: number }> {
  let bytes = 0;
  let entries = 0;
  for await (const { sizeBytes } of objects.list(prefix)) {
    bytes += sizeBytes;
    entries += 1;
  }
  return { bytes, entries };
}

/** Yields a file and the folders that it is in. */
function* entriesOf(path: string, stats: FileStats): Generator<FolderEntry> {
  const steps = path.split('/');
  for (const [at, name] of steps.entries()) {
    const isFolder = at < steps.length - 1;
    yield { path: steps.slice(0, at + 1).join('/'), name, isFolder, stats };
  }
}

function statsOf({ sizeBytes, modifiedAtMs }: StoredObject): FileStats {
  return { size: sizeBytes, mtimeMs: modifiedAtMs, ctimeMs: modifiedAtMs, ino: 0 };
}
