import type { Dirent, Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { safeFolder } from '../../files/safe-name.ts';

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
  readonly found: readonly FoundFile[];
  readonly leftOut: readonly LeftOut[];
  /** Files that could not be read. Another run may be able to. */
  readonly failed: readonly LeftOut[];
};

/** The rules that decide which files are imported. */
export type ScanRules = {
  readonly maxBytes: number;
  readonly isKeptName: (name: string) => boolean;
};

type ScanLists = { found: FoundFile[]; leftOut: LeftOut[]; failed: LeftOut[] };

/**
 * Finds all files below a folder, in the order of their names. Follows a link only to a file below the same folder.
 * Returns nothing when the folder does not exist.
 */
export async function scan(root: string, label: string, rules: ScanRules): Promise<Scan> {
  const lists: ScanLists = { found: [], leftOut: [], failed: [] };
  const real = await realRoot(root, label, lists);
  const folders = real === undefined ? [] : [''];
  for (const folder of folders) {
    const entries = await entriesOf(join(real ?? '', folder)).catch((error: unknown) => {
      lists.failed.push({ name: `${label}/${folder}`, why: reasonOf(error) });
      return [];
    });
    for (const entry of entries) {
      const at = { root: real ?? '', label, folder, entry };
      if (await scanEntry(at, rules, lists)) folders.push(joinBelow(folder, entry.name));
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
async function realRoot(
  root: string,
  label: string,
  lists: ScanLists,
): Promise<string | undefined> {
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
async function scanEntry(at: EntryContext, rules: ScanRules, lists: ScanLists): Promise<boolean> {
  const { folder, entry } = at;
  const path = joinBelow(folder, entry.name);
  const name = `${at.label}/${path}`;
  const leaveOut = (why: string): false => {
    lists.leftOut.push({ name: entry.isDirectory() ? `${name}/` : name, why });
    return false;
  };
  if (!rules.isKeptName(entry.name)) return leaveOut('unsafe name');
  if (entry.isDirectory()) return isPossibleFolder(path) || leaveOut('path too long');
  try {
    const real = await resolveFile(at);
    if (!real.ok) return leaveOut(real.why);
    if (real.stats.size > rules.maxBytes) return leaveOut('larger than --max-upload-size');
    lists.found.push(foundAt(at, real));
  } catch (error) {
    lists.failed.push({ name, why: reasonOf(error) });
  }
  return false;
}

/** Checks the length of a folder's path. Leading dots are allowed here, so they are replaced for the check. */
function isPossibleFolder(path: string): boolean {
  return safeFolder(path.replaceAll(/(^|\/)\.+/g, '$1_')) !== undefined;
}

type RealFile =
  | { readonly ok: true; readonly path: string; readonly stats: Stats }
  | { readonly ok: false; readonly why: string };

async function resolveFile({ root, folder, entry }: EntryContext): Promise<RealFile> {
  const path = join(root, folder, entry.name);
  if (entry.isFile()) return { ok: true, path, stats: await stat(path) };
  if (!entry.isSymbolicLink()) return { ok: false, why: 'neither a file nor a folder' };
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) return { ok: false, why: 'a link to nothing' };
  if (real !== root && !real.startsWith(root + sep))
    return { ok: false, why: 'a link that leaves the folder' };
  const stats = await stat(real);
  if (stats.isFile()) return { ok: true, path: real, stats };
  return { ok: false, why: 'a link to something else than a file' };
}

function foundAt(
  { folder, entry }: EntryContext,
  { path, stats }: RealFile & { ok: true },
): FoundFile {
  return {
    path,
    subfolder: folder,
    filename: entry.name,
    sizeBytes: stats.size,
    modifiedAtMs: Math.round(stats.mtimeMs),
  };
}

function joinBelow(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}
