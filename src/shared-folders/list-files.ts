import type { Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { safeFolder, safeName } from '../files/safe-name.ts';

/** A plain file below a folder. */
export type FolderFile = {
  readonly subfolder: string;
  readonly filename: string;
  readonly stats: Stats;
};

/** Listing a folder that is a whole disk would block every caller. */
const MAX_ENTRIES = 100_000;

/** Plain files with safe names, in this folder and below; links and what cannot be read are not there. */
export async function listFilesBelow(root: string): Promise<readonly FolderFile[]> {
  const found: FolderFile[] = [];
  const folders = [''];
  for (const subfolder of folders) {
    const entries = await readdir(join(root, subfolder), { withFileTypes: true }).catch(() => []);
    const safeEntries = entries.filter(({ name }) => safeName(name) !== undefined);
    const subfolders = safeEntries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(subfolder, name));
    folders.push(...subfolders.filter((path) => safeFolder(path) !== undefined));
    const files = safeEntries.filter((entry) => entry.isFile()).map(({ name }) => name);
    found.push(...(await Promise.all(files.map((name) => fileAt(root, subfolder, name)))).flat());
    if (found.length > MAX_ENTRIES) break;
  }
  return found;
}

/** Empty when the file was removed meanwhile. */
async function fileAt(root: string, subfolder: string, filename: string): Promise<FolderFile[]> {
  const stats = await lstat(join(root, subfolder, filename)).catch(() => undefined);
  return stats?.isFile() ? [{ subfolder, filename, stats }] : [];
}
