import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reached } from '../../lib/crash-point.ts';
import { hashFile } from '../../lib/hash.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import { type FilesSource, copyFiles, finishCopy } from '../files/copy-files.ts';
import { type FilesPlace, isInBucket, placeInBucket, removeCopying } from '../files/places.ts';
import type { StartProgress } from '../progress.ts';
import type { Backup } from './backups.ts';

/** Returns true for files of a backup that belong into a bucket, not into the data folder. */
export function belongsInBucket(path: string): boolean {
  return isInBucket(path) || path === 'folder.id' || path === 'ledger.id';
}

/**
 * Copies the files of a backup into an empty bucket, and verifies them. No server may use the bucket before the
 * returned function has finished the copy.
 */
export async function restoreIntoBucket(
  backup: Backup,
  bucket: OpenedBucket,
  { dataDir, progress }: { readonly dataDir: string; readonly progress: StartProgress },
): Promise<() => Promise<void>> {
  const to = placeInBucket(bucket, dataDir);
  const { source, createdAt } = backup.manifest;
  try {
    await copyFiles({ from: filesOf(backup), to, id: `${source} ${createdAt}`, progress });
  } finally {
    removeCopying(dataDir);
  }
  return () => finish(backup, to);
}

async function finish({ path, manifest }: Backup, to: FilesPlace): Promise<void> {
  for (const name of ['ledger.id', 'folder.id'] as const)
    if (manifest.files.some((file) => file.path === name))
      await to.writeSmall(name, readFileSync(join(path, name), 'utf8'));
  reached('copy-named');
  await finishCopy(to);
}

function filesOf({ name, path, manifest }: Backup): FilesSource {
  return {
    name: `the backup ${name}`,
    list: async () => manifest.files.filter((file) => isInBucket(file.path)),
    async withFile(below, work) {
      const file = join(path, below);
      return await work({ path: file, ...(await hashFile(file)) });
    },
  };
}
