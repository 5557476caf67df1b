import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { LRUCache } from 'lru-cache';
import { createKeyedMutex } from '../lib/concurrency.ts';
import type { SpooledFile } from '../protocol/job-api.ts';
import type { FileStats, FolderEntry, PathStatus } from './folder-paths.ts';
import {
  MAX_USER_ENTRIES,
  type Overwrite,
  type Unchanged,
  type UserDataStore,
  folderNameOf,
  refusalFor,
} from './user-data-store.ts';
import { atMost } from '../lib/lru-size.ts';

/** The objects of a bucket, by key. */
export type ObjectStore = {
  stat(key: string): Promise<StoredObject | undefined>;
  list(prefix: string): AsyncIterable<StoredObject & { readonly key: string }>;
  /** `onlyNew`: `false` when there is one. */
  put(key: string, bytes: Uint8Array, how: { readonly onlyNew: boolean }): Promise<boolean>;
  putFile(key: string, file: Pick<SpooledFile, 'path' | 'sizeBytes'>): Promise<void>;
  /** `false`: there is no such object. */
  copy(from: string, to: string): Promise<boolean>;
  remove(key: string): Promise<void>;
  open(key: string): Promise<Readable | undefined>;
};

type StoredObject = { readonly sizeBytes: number; readonly modifiedAtMs: number };
type Usage = { readonly bytes: number; readonly entries: number };

const ROOT = 'userdata/';
/** Larger files are put without the condition that there is none: it was checked a moment before. */
const CONDITIONAL_BYTES = 4 * 2 ** 20;
const MAX_USAGES = 1000;
/** Other processes may have changed the files of a user since. */
const USAGE_VALID_MS = 60_000;

/** Files of users in a bucket. A folder is there as long as a file is in it. */
export function createBucketUserData(options: {
  readonly objects: ObjectStore;
  readonly quotaBytes: number;
}): UserDataStore {
  const { objects, quotaBytes } = options;
  const inUserOrder = createKeyedMutex();
  const usages = new LRUCache<string, Usage>({ ...atMost(MAX_USAGES), ttl: USAGE_VALID_MS });
  const keyOf = (user: string, path: string): string => `${folderFor(user)}/${path}`;
  const folderFor = (user: string): string => `${ROOT}${folderNameOf(user)}`;

  async function hasObjects(prefix: string): Promise<boolean> {
    for await (const _object of objects.list(prefix)) return true;
    return false;
  }

  async function look(user: string, path: string): Promise<PathStatus> {
    const key = path === '' ? folderFor(user) : keyOf(user, path);
    const found = path === '' ? undefined : await objects.stat(key);
    if (found) return { kind: 'file', path: key, stats: statsOf(found) };
    if (await hasObjects(`${key}/`)) return { kind: 'folder', path: key };
    const parents = path.split('/').slice(0, -1);
    for (let depth = 1; depth <= parents.length; depth += 1) {
      const parent = keyOf(user, parents.slice(0, depth).join('/'));
      if (await objects.stat(parent)) return { kind: 'blocked', path: key };
    }
    return { kind: 'absent', path: key };
  }

  async function usageOf(user: string): Promise<Usage> {
    const known = usages.get(user);
    if (known) return known;
    let usage: Usage = { bytes: 0, entries: 0 };
    for await (const { sizeBytes } of objects.list(`${folderFor(user)}/`))
      usage = { bytes: usage.bytes + sizeBytes, entries: usage.entries + 1 };
    usages.set(user, usage);
    return usage;
  }

  async function hasRoom(user: string, addedBytes: number): Promise<boolean> {
    const { bytes, entries } = await usageOf(user);
    return bytes + addedBytes <= quotaBytes && entries < MAX_USER_ENTRIES;
  }

  async function fileAt(key: string): Promise<PathStatus | Unchanged> {
    const found = await objects.stat(key);
    return found ? { kind: 'file', path: key, stats: statsOf(found) } : 'absent';
  }

  async function put(
    user: string,
    path: string,
    file: SpooledFile,
    how: Overwrite,
  ): Promise<PathStatus | Unchanged> {
    const target = await look(user, path);
    const refusal = refusalFor(target, how);
    if (refusal) return refusal;
    const replacedBytes = target.kind === 'file' ? target.stats.size : 0;
    if (!(await hasRoom(user, file.sizeBytes - replacedBytes))) return 'full';
    usages.delete(user);
    const onlyNew = !how.overwrite;
    if (file.sizeBytes > CONDITIONAL_BYTES) await objects.putFile(target.path, file);
    else if (!(await objects.put(target.path, await readFile(file.path), { onlyNew })))
      return 'exists';
    return await fileAt(target.path);
  }

  /** The copy comes first: a crash in between leaves both. */
  async function move(
    user: string,
    from: string,
    to: string,
    how: Overwrite,
  ): Promise<PathStatus | Unchanged> {
    const source = await look(user, from);
    if (source.kind !== 'file') return source.kind === 'blocked' ? 'blocked' : 'absent';
    const target = await look(user, to);
    const refusal = refusalFor(target, how);
    if (refusal) return refusal;
    if (from === to) return target;
    if (!(await hasRoom(user, 0))) return 'full';
    usages.delete(user);
    if (!(await objects.copy(source.path, target.path))) return 'absent';
    await objects.remove(source.path);
    return await fileAt(target.path);
  }

  async function remove(user: string, path: string): Promise<Unchanged | undefined> {
    const target = await look(user, path);
    if (target.kind !== 'file') return target.kind === 'blocked' ? 'blocked' : 'absent';
    usages.delete(user);
    await objects.remove(target.path);
    return undefined;
  }

  async function list(
    user: string,
    path: string,
    { depth }: Parameters<UserDataStore['list']>[2],
  ): Promise<readonly FolderEntry[]> {
    const prefix = path === '' ? `${folderFor(user)}/` : `${keyOf(user, path)}/`;
    const entries = new Map<string, FolderEntry>();
    for await (const { key, ...found } of objects.list(prefix)) {
      const below = key.slice(prefix.length);
      if (below === '' || below.endsWith('/')) continue;
      for (const entry of entriesOf(below, statsOf(found)))
        if (depth === 'all' || !entry.path.includes('/')) entries.set(entry.path, entry);
    }
    return [...entries.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
  }

  return {
    folderFor,
    look,
    list,
    content: (user, path) => objects.open(keyOf(user, path)),
    put: (...to) => inUserOrder(to[0], () => put(...to)),
    move: (...to) => inUserOrder(to[0], () => move(...to)),
    remove: (user, path) => inUserOrder(user, () => remove(user, path)),
  };
}

/** A file, and the folders it lies in. */
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
