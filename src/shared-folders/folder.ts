import { createHash } from 'node:crypto';
import { type Stats, constants } from 'node:fs';
import { mkdir, open, readdir, realpath, rename, rm, writeFile, lstat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { linkOrRenameNew } from '../lib/rename-new.ts';
import { safeFolder, safeName } from '../files/safe-name.ts';
import { lstatOrUndefined, statPath } from '../files/folder-paths.ts';

/** A file below the folder, as v1 names it. */
export type FileName = { readonly subfolder: string; readonly filename: string };

/** A plain folder that other programs of this machine read and write, too. */
export type Folder = Awaited<ReturnType<typeof openFolder>>;

type FileContent = {
  readonly source: Readable;
  /** Tells it from what other servers write to the folder. */
  readonly tag: string;
  /** Absent: unknown. */
  readonly sizeBytes: number | undefined;
  readonly modifiedAtMs: number;
  /** `keep`: an existing file of the name stays. */
  readonly existing: 'keep' | 'replace';
};

const READ_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);
const WRITE_FLAGS =
  constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0);

/** Opens a folder, which appears when it is not there. */
export async function openFolder(path: string) {
  await mkdir(path, { recursive: true });
  const root = await realpath(path);
  const pathOf = ({ subfolder, filename }: FileName): string => join(root, subfolder, filename);
  return {
    /** Tells it from other folders. */
    id: createHash('sha256').update(root).digest('hex').slice(0, 16),
    root,
    /** A file that is named by its whole path, as v1 takes one, by its name in the folder. */
    nameOf: (name: FileName) => nameBelow([root, resolve(path)], name),
    /** True when the folder can be read: a disk may be unmounted for a while. */
    isAvailable: async () => (await lstatOrUndefined(root))?.isDirectory() === true,
    /** A file of that name; links are never followed. */
    async look(name: FileName): Promise<Stats | undefined> {
      if (!isSafe(name)) return undefined;
      const place = await statPath(root, join(name.subfolder, name.filename));
      return place.kind === 'file' ? place.stats : undefined;
    },
    /** True when anything has that name, a link or folder included. */
    exists: async (name: FileName) => (await lstatOrUndefined(pathOf(name))) !== undefined,
    open: (name: FileName) => open(pathOf(name), READ_FLAGS),
    list: () => listFilesBelow(root),
    /** Names directly in a subfolder. */
    async listNames(subfolder: string): Promise<readonly string[]> {
      if (safeFolder(subfolder) === undefined) return [];
      const place = await statPath(root, subfolder);
      return place.kind === 'folder' ? await readdir(place.path) : [];
    },
    /** Writes a file, whole or not at all. */
    place: (name: FileName, content: FileContent) =>
      place({ root, target: pathOf(name), name }, content),
  };
}

/** The same name where it leads elsewhere, which no file has. */
function nameBelow(roots: readonly string[], name: FileName): FileName {
  if (!isAbsolute(name.subfolder)) return name;
  const subfolder = roots
    .map((root) => relative(root, name.subfolder))
    .find((path) => !isAbsolute(path) && path.split(/[\\/]/)[0] !== '..');
  return subfolder === undefined ? name : { ...name, subfolder };
}

/** True when a file is the one a row records: size and modification time agree. */
export function matchesRow(
  row: { readonly sizeBytes: number; readonly modifiedAtMs: number },
  stats: Stats,
): boolean {
  const isSameSize = row.sizeBytes === stats.size || row.sizeBytes === 0;
  return isSameSize && row.modifiedAtMs === Math.round(stats.mtimeMs);
}

function isSafe({ subfolder, filename }: FileName): boolean {
  return safeName(filename) !== undefined && safeFolder(subfolder) !== undefined;
}

type WriteTarget = { readonly root: string; readonly target: string; readonly name: FileName };

async function place(
  { root, target, name }: WriteTarget,
  content: FileContent,
): Promise<'placed' | 'taken'> {
  try {
    await requireSubfolder(root, name);
    // The same for every try, so that a crash leaves at most the one the next try writes over.
    const partialPath = join(root, name.subfolder, `.holdover-${digestOf(name, content.tag)}.part`);
    try {
      await write(partialPath, content);
      if (content.existing === 'replace') await rename(partialPath, target);
      else if ((await linkOrRenameNew(partialPath, target)) === 'taken') return 'taken';
      return 'placed';
    } finally {
      await rm(partialPath, { force: true }).catch(ignore);
    }
  } finally {
    content.source.destroy();
  }
}

/** A link on the way would lead out of the folder. */
async function requireSubfolder(root: string, { subfolder, filename }: FileName): Promise<void> {
  const { kind } = isSafe({ subfolder, filename }) ? await statPath(root, subfolder) : BLOCKED;
  if (kind === 'absent') await mkdir(join(root, subfolder), { recursive: true });
  else if (kind !== 'folder') throw new Error(`${subfolder} is not a plain folder`);
}

const BLOCKED = { kind: 'blocked' } as const;

async function write(
  path: string,
  { source, sizeBytes, modifiedAtMs }: FileContent,
): Promise<void> {
  const handle = await open(path, WRITE_FLAGS, 0o666);
  try {
    await writeFile(handle, source);
    const { size } = await handle.stat();
    if (sizeBytes !== undefined && size !== sizeBytes) throw new Error('the file broke off');
    const modified = modifiedAtMs / 1000;
    await handle.utimes(modified, modified);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function digestOf({ subfolder, filename }: FileName, tag: string): string {
  return createHash('sha256').update(`${tag}/${subfolder}/${filename}`).digest('hex').slice(0, 16);
}

function ignore(): void {}

/** A plain file below a folder. */
type FolderFile = {
  readonly subfolder: string;
  readonly filename: string;
  readonly stats: Stats;
};

/** Listing a folder that is a whole disk would block every caller. */
const MAX_ENTRIES = 100_000;

/** Plain files with safe names, in this folder and below; links and what cannot be read are not there. */
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

/** `undefined` when the file was removed meanwhile. */
async function fileAt(
  root: string,
  subfolder: string,
  filename: string,
): Promise<FolderFile | undefined> {
  const stats = await lstat(join(root, subfolder, filename)).catch(() => undefined);
  return stats?.isFile() ? { subfolder, filename, stats } : undefined;
}
