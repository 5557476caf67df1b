import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { isWithin, realPathOf } from '../../config/shared-folders.ts';

/** Plain files only, by their path below the folder. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** A backup inside of what it saves would go with it. */
export function refuseNested(backups: string, dataDir: string): void {
  const [one, other] = [realPathOf(resolve(backups)), realPathOf(resolve(dataDir))];
  if (!isWithin(one, other) && !isWithin(other, one)) return;
  throw new Error(`backups (${backups}) and data folder (${dataDir}) must not be in one another`);
}
