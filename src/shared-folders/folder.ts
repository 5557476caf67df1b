import type { FileHandle } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, realpath, rename, rm, writeFile, lstat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { linkOrRenameNew } from '../lib/rename-new.ts';
import { safeFolder, safeName } from '../files/safe-name.ts';
import { type FileStats, lstatOrUndefined, statPath } from '../files/folder-paths.ts';

/** The v1 name of a file in the folder. */
export type FileName = { readonly subfolder: string; readonly filename: string };

/** A plain folder that other programs of this machine also read and write. */
export interface Folder {
  /** Identifies the folder by its real path. */
  readonly id: string;
  /** Returns the name relative to the folder. v1 also accepts names with an absolute path. */
  readonly nameOf: (name: FileName) => FileName;
  /** Returns true when the folder can be read. Its disk may be unmounted for a while. */
  readonly isAvailable: () => Promise<boolean>;
  /** Returns the stats of a file; `undefined` when it does not exist. Never follows links. */
  look(name: FileName): Promise<FileStats | undefined>;
  /** Returns true when a file, link or folder has this name. */
  readonly exists: (name: FileName) => Promise<boolean>;
  readonly open: (name: FileName) => Promise<FileHandle>;
  readonly list: () => Promise<readonly FolderFile[]>;
  /** Returns the names directly in a subfolder. */
  listNames(subfolder: string): Promise<readonly string[]>;
  /** Writes a file completely or not at all. Returns `taken` when the name exists and must be kept. */
  readonly place: (name: FileName, content: FileContent) => Promise<'placed' | 'taken'>;
  /** Removes what a crash in the middle of `place` left. */
  readonly removePartial: (name: FileName, tag: string) => Promise<void>;
}

type FileContent = {
  readonly source: Readable;
  /** Makes the name of the temporary file differ from those of other servers. */
  readonly tag: string;
  /** The expected size; `undefined` when it is not known. */
  readonly sizeBytes: number | undefined;
  readonly modifiedAtMs: number;
  /** With `keep`, an existing file of this name is not replaced. */
  readonly existing: 'keep' | 'replace';
};

const READ_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);
const WRITE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0);

/** Opens a folder. Creates it if it does not exist. */
export async function openFolder(path: string): Promise<Folder> {
  await mkdir(path, { recursive: true });
  const root = await realpath(path);
  const pathOf = ({ subfolder, filename }: FileName): string => join(root, subfolder, filename);
  return {
    id: createHash('sha256').update(root).digest('hex').slice(0, 16),
    nameOf: (name) => nameBelow([root, resolve(path)], name),
    isAvailable: () => isFolder(root),
    async look(name) {
      if (!isSafe(name)) return undefined;
      const place = await statPath(root, join(name.subfolder, name.filename));
      return place.kind === 'file' ? place.stats : undefined;
    },
    exists: async (name) => (await lstatOrUndefined(pathOf(name))) !== undefined,
    open: (name) => open(pathOf(name), READ_FLAGS),
    list: () => listFilesBelow(root),
    async listNames(subfolder) {
      if (safeFolder(subfolder) === undefined) return [];
      const place = await statPath(root, subfolder);
      return place.kind === 'folder' ? await readdir(place.path) : [];
    },
    place: (name, content) => place(root, name, content),
    removePartial: (name, tag) => rm(partialPathOf(root, name, tag), { force: true }),
  };
}

/** Returns the name relative to a root, or unchanged when it is outside of all roots; then no file has it. */
function nameBelow(roots: readonly string[], name: FileName): FileName {
  if (!isAbsolute(name.subfolder)) return name;
  const subfolder = roots
    .map((root) => relative(root, name.subfolder))
    .find((path) => !isAbsolute(path) && path.split(/[\\/]/)[0] !== '..');
  return subfolder === undefined ? name : { ...name, subfolder };
}

/** Returns true when a file has the modification time and the size of a row. A row of size 0 matches any size. */
export function matchesRow(
  row: { readonly sizeBytes: number; readonly modifiedAtMs: number },
  stats: FileStats,
): boolean {
  const isSameSize = row.sizeBytes === stats.size || row.sizeBytes === 0;
  return isSameSize && row.modifiedAtMs === Math.round(stats.mtimeMs);
}

function isSafe({ subfolder, filename }: FileName): boolean {
  return safeName(filename) !== undefined && safeFolder(subfolder) !== undefined;
}

async function place(
  root: string,
  name: FileName,
  content: FileContent,
): Promise<'placed' | 'taken'> {
  const target = join(root, name.subfolder, name.filename);
  try {
    await requireSubfolder(root, name);
    const partialPath = partialPathOf(root, name, content.tag);
    try {
      await write(partialPath, content);
      if (content.existing === 'replace') await rename(partialPath, target);
      else if ((await linkOrRenameNew(partialPath, target)) === 'taken') return 'taken';
      return 'placed';
    } finally {
      await rm(partialPath, { force: true }).catch(() => {});
    }
  } finally {
    content.source.destroy();
  }
}

/**
 * Creates the subfolder if it does not exist, but not the folder: its disk may be unmounted. Throws when a part of the
 * path is a link, which may lead out of the folder.
 */
async function requireSubfolder(root: string, name: FileName): Promise<void> {
  const { subfolder } = name;
  const kind = isSafe(name) && (await statPath(root, subfolder)).kind;
  const isMissing = kind === 'absent' && (await isFolder(root));
  if (isMissing) await mkdir(join(root, subfolder), { recursive: true });
  else if (kind !== 'folder') throw new Error(`${subfolder || root} is not a plain folder`);
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstatOrUndefined(path))?.isDirectory() === true;
}

async function write(
  path: string,
  { source, sizeBytes, modifiedAtMs }: FileContent,
): Promise<void> {
  const handle = await open(path, WRITE_FLAGS, 0o666);
  try {
    await writeFile(handle, source);
    const { size } = await handle.stat();
    if (sizeBytes !== undefined && size !== sizeBytes) throw new Error('the file is incomplete');
    const modified = modifiedAtMs / 1000;
    await handle.utimes(modified, modified);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns the same path for every attempt, so that the next attempt replaces the file that a crash leaves. */
function partialPathOf(root: string, { subfolder, filename }: FileName, tag: string): string {
  const named = createHash('sha256').update(`${tag}/${subfolder}/${filename}`).digest('hex');
  return join(root, subfolder, `.holdover-${named.slice(0, 16)}.part`);
}

/** A plain file below a folder. */
type FolderFile = {
  readonly subfolder: string;
  readonly filename: string;
  readonly stats: FileStats;
};

/** The listing ends after this many files, because a very large folder would block all callers. */
const MAX_ENTRIES = 100_000;

/**
 * Returns the plain files with safe names in this folder and below. Leaves out links, and files that cannot be read.
 */
async function listFilesBelow(root: string): Promise<readonly FolderFile[]> {
  const found: FolderFile[] = [];
  const folders = [''];
  for (const subfolder of folders) {
    const entries = await readdir(join(root, subfolder), { withFileTypes: true }).catch(() => []);
    const safeEntries = entries.filter(({ name }) => safeName(name) !== undefined);
    const subfolders = safeEntries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(subfolder, name));
    for (const path of subfolders) if (safeFolder(path) !== undefined) folders.push(path);
    const files = safeEntries.filter((entry) => entry.isFile()).map(({ name }) => name);
    const listed = await Promise.all(files.map((name) => fileAt(root, subfolder, name)));
    for (const file of listed) if (file) found.push(file);
    if (found.length > MAX_ENTRIES) break;
  }
  return found;
}

/** Returns a file of a listing; `undefined` when it was removed meanwhile. */
async function fileAt(
  root: string,
  subfolder: string,
  filename: string,
): Promise<FolderFile | undefined> {
  const stats = await lstat(join(root, subfolder, filename)).catch(() => undefined);
  return stats?.isFile() ? { subfolder, filename, stats } : undefined;
}
