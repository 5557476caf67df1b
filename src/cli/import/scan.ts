import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { isWithin } from '../../config/shared-folders.ts';
import { safePathBelow } from '../../files/folder-paths.ts';

/** A file of the v1 server that can be imported. */
export type FoundFile = {
  /** The real path, after links are resolved. */
  readonly path: string;
  /** The folder of the file, relative to the scanned folder. */
  readonly subfolder: string;
  readonly filename: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
};

/** A file or folder that is not imported, and the reason in a few words. */
export type LeftOut = { readonly name: string; readonly why: string };

/** The result of a scan. */
export type Scan = {
  readonly found: FoundFile[];
  readonly leftOut: LeftOut[];
  /** Files that could not be read. Another run may be able to. */
  readonly failed: LeftOut[];
};

/** The rules that decide which files are imported. */
export type ScanRules = {
  readonly maxBytes: number;
  readonly isKeptName: (name: string) => boolean;
};

/**
 * Finds all files below a folder, in the order of their names. Follows a link only to a file below the same folder.
 * Returns nothing when the folder does not exist.
 */
export async function scan(root: string, label: string, rules: ScanRules): Promise<Scan> {
  const lists: Scan = { found: [], leftOut: [], failed: [] };
  const real = await realRoot(root, label, lists);
  if (real === undefined) return lists;
  const folders = [''];
  for (const folder of folders) {
    const entries = await entriesOf(join(real, folder)).catch((error: unknown) => {
      lists.failed.push({ name: `${label}/${folder}`, why: reasonOf(error) });
      return [];
    });
    for (const entry of entries) {
      const at = { root: real, label, folder, entry };
      if (await scanEntry(at, rules, lists)) folders.push(posix.join(folder, entry.name));
    }
  }
  return lists;
}

/** Returns the reason of a file system error in a few words. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : `cannot be read (${code})`;
}

/** Returns the real path of the folder, which may be a link to another disk. */
async function realRoot(root: string, label: string, lists: Scan): Promise<string | undefined> {
  try {
    const real = await realpath(root);
    if ((await stat(real)).isDirectory()) return real;
    lists.leftOut.push({ name: label, why: 'is not a folder' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      lists.failed.push({ name: label, why: reasonOf(error) });
  }
  return undefined;
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

type EntryContext = {
  readonly root: string;
  readonly label: string;
  readonly folder: string;
  readonly entry: Dirent;
};

/** Adds an entry to its list. Returns true for a folder, which the caller must scan. */
async function scanEntry(at: EntryContext, rules: ScanRules, lists: Scan): Promise<boolean> {
  const { folder, entry } = at;
  const path = posix.join(folder, entry.name);
  const name = `${at.label}/${path}`;
  const leaveOut = (why: string): false => {
    lists.leftOut.push({ name: entry.isDirectory() ? `${name}/` : name, why });
    return false;
  };
  if (!rules.isKeptName(entry.name)) return leaveOut('unsafe name');
  if (entry.isDirectory()) return safePathBelow(path).ok || leaveOut('path too long');
  try {
    const real = await resolveFile(at);
    if ('why' in real) return leaveOut(real.why);
    const { size: sizeBytes, mtimeMs } = real.stats;
    if (sizeBytes > rules.maxBytes) return leaveOut('larger than --max-upload-size');
    const modifiedAtMs = Math.round(mtimeMs);
    const names = { subfolder: folder, filename: entry.name };
    lists.found.push({ path: real.path, ...names, sizeBytes, modifiedAtMs });
  } catch (error) {
    lists.failed.push({ name, why: reasonOf(error) });
  }
  return false;
}

type RealFile = { readonly path: string; readonly stats: Stats } | { readonly why: string };

async function resolveFile({ root, folder, entry }: EntryContext): Promise<RealFile> {
  const path = join(root, folder, entry.name);
  if (entry.isFile()) return { path, stats: await stat(path) };
  if (!entry.isSymbolicLink()) return { why: 'neither a file nor a folder' };
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return { why: 'a link to nothing' };
  if (!isWithin(real, root)) return { why: 'a link that leaves the folder' };
  const stats = await stat(real);
  if (stats.isFile()) return { path: real, stats };
  return { why: 'a link to something else than a file' };
}
