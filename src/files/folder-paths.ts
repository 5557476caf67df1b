import type { Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { undefinedIfAbsent } from '../lib/absent-file.ts';
import { safeName, withinRoot } from './safe-name.ts';

/** The size and times of a file. */
export type FileStats = Pick<Stats, 'size' | 'mtimeMs' | 'ctimeMs' | 'ino'>;

/**
 * The state of a path in a user's folder. `blocked`: a link, a device, or a file in the place of a
 * folder.
 */
export type PathStatus =
  | { readonly kind: 'file'; readonly path: string; readonly stats: FileStats }
  | { readonly kind: 'folder' | 'absent' | 'blocked'; readonly path: string };

/** A file or folder of a user, by its path below the listed folder. */
export type FolderEntry = {
  readonly path: string;
  readonly name: string;
  readonly isFolder: boolean;
  readonly stats: FileStats;
};

/** A path that a client sent: safe, outside of the folder, or with an unsafe name. */
export type SafePath =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly reason: 'outside' | 'unsafe' };

const MAX_PATH_BYTES = 1024;
const MAX_DEPTH = 32;

/**
 * Checks a path. v1 resolves `.` and `..`. Front ends store lists of their own under names that
 * begin with a dot.
 */
export function safePathBelow(requestedPath: string): SafePath {
  const path = withinRoot(requestedPath);
  if (path === undefined) return { ok: false, reason: 'outside' };
  const parts = path.split('/');
  const isSafe =
    Buffer.byteLength(path) <= MAX_PATH_BYTES &&
    parts.length <= MAX_DEPTH &&
    parts.every((part) => safeName(part.replace(/^\.+/, '')) !== undefined);
  return isSafe ? { ok: true, path } : { ok: false, reason: 'unsafe' };
}

/** Checks every step of the path, so that no link is followed. */
export async function statPath(root: string, path: string): Promise<PathStatus> {
  const steps = path === '' ? [] : path.split('/');
  let current = root;
  let stats = await lstatOrUndefined(current);
  for (const step of steps) {
    if (stats === undefined) return { kind: 'absent', path: join(root, path) };
    if (!stats.isDirectory()) return { kind: 'blocked', path: join(root, path) };
    current = join(current, step);
    stats = await lstatOrUndefined(current);
  }
  if (stats === undefined) return { kind: 'absent', path: current };
  if (stats.isFile()) return { kind: 'file', path: current, stats };
  return { kind: stats.isDirectory() ? 'folder' : 'blocked', path: current };
}

/** Lists everything below a folder, in the order of the paths. Links and devices are left out. */
export async function listBelow(
  folder: string,
  { depth }: { readonly depth: 'this folder' | 'all' },
): Promise<readonly FolderEntry[]> {
  const options = { recursive: depth === 'all', withFileTypes: true } as const;
  const found = (await undefinedIfAbsent(readdir(folder, options))) ?? [];
  const entries = await Promise.all(
    found.map(async ({ name, parentPath }) => {
      const stats = await lstatOrUndefined(join(parentPath, name));
      if (!stats?.isFile() && !stats?.isDirectory()) return [];
      const path = relative(folder, join(parentPath, name)).split(sep).join('/');
      return [{ path, name, isFolder: stats.isDirectory(), stats }];
    }),
  );
  return entries.flat().toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Returns the state of a path itself; links are not followed. `undefined`: it does not exist. */
export function lstatOrUndefined(path: string): Promise<Stats | undefined> {
  return undefinedIfAbsent(lstat(path));
}
