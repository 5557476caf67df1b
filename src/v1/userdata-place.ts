import type { Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { safeName, withinRoot } from './safe-name.ts';

/** What is at a path of a user's folder; `blocked`: a link, a device, or a file where a folder should be. */
export type Place =
  | { readonly kind: 'file'; readonly path: string; readonly stats: Stats }
  | { readonly kind: 'folder' | 'absent' | 'blocked'; readonly path: string };

/** A file or folder of a user, by its path below the folder that was listed. */
export type Entry = {
  readonly path: string;
  readonly name: string;
  readonly isFolder: boolean;
  readonly stats: Stats;
};

/** A name a client gave: below the folder, outside of it, or one that is not kept. */
export type Named =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly why: 'outside' | 'unsafe' };

const MAX_PATH_BYTES = 1024;
const MAX_DEPTH = 32;
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);

/** v1 resolves `.` and `..`. Names begin with a dot where front ends keep their own lists. */
export function namedBelow(given: string): Named {
  const path = withinRoot(given);
  if (path === undefined) return { ok: false, why: 'outside' };
  const parts = path.split('/');
  const kept =
    Buffer.byteLength(path) <= MAX_PATH_BYTES &&
    parts.length <= MAX_DEPTH &&
    parts.every((part) => safeName(part.replace(/^\.+/, '')) !== undefined);
  return kept ? { ok: true, path } : { ok: false, why: 'unsafe' };
}

/** Looks at every step of the way, so that no link is ever followed. */
export async function look(home: string, path: string): Promise<Place> {
  const steps = path === '' ? [] : path.split('/');
  let at = home;
  let stats = await plainStat(at);
  for (const step of steps) {
    if (stats === undefined) return { kind: 'absent', path: join(home, path) };
    if (!stats.isDirectory()) return { kind: 'blocked', path: join(home, path) };
    at = join(at, step);
    stats = await plainStat(at);
  }
  if (stats === undefined) return { kind: 'absent', path: at };
  if (stats.isFile()) return { kind: 'file', path: at, stats };
  return { kind: stats.isDirectory() ? 'folder' : 'blocked', path: at };
}

/** Everything below a folder, in the order of the paths; links and devices are left out. */
export async function entriesBelow(
  folder: string,
  options: { readonly depth: 'this folder' | 'all' },
): Promise<readonly Entry[]> {
  const found: Entry[] = [];
  const folders = [''];
  for (const below of folders) {
    for (const entry of await entriesIn(folder, below)) {
      found.push(entry);
      if (entry.isFolder && options.depth === 'all') folders.push(entry.path);
    }
  }
  return found.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

async function entriesIn(top: string, below: string): Promise<Entry[]> {
  const names = (await unlessGone(readdir(join(top, below)))) ?? [];
  const entries = await Promise.all(
    names.map(async (name) => {
      const path = below === '' ? name : `${below}/${name}`;
      const stats = await plainStat(join(top, path));
      return stats && (stats.isFile() || stats.isDirectory())
        ? [{ path, name, isFolder: stats.isDirectory(), stats }]
        : [];
    }),
  );
  return entries.flat();
}

function plainStat(path: string): Promise<Stats | undefined> {
  return unlessGone(lstat(path));
}

async function unlessGone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (NOT_THERE.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
