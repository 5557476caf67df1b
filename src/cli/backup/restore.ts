import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { syncPath } from '../../lib/durability.ts';
import type { CrashPoint } from '../../lib/crash-point.ts';
import { makeAsideFolder } from '../../data-folder/set-aside.ts';
import { UNFINISHED_RESTORE, databasePath, placeBucketOf } from '../../data-folder/data-dir.ts';
import { refuseSharedUse } from '../../data-folder/spool-folder.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import { inspectDatabase, recordedBlobs } from '../../ledger/sqlite/inspect.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { copyTo, filesBelow, inUseText, refuseNested, tryLock } from './copy.ts';
import { type Backup, backupsIn } from './backups.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import type { Manifest } from './manifest.ts';
import { blobPath } from './records.ts';
import { belongsInBucket, restoreIntoBucket } from './restore-files.ts';

export type RestoreOptions = {
  /** The folder of backups. */
  readonly from: string;
  /** The name of the backup; `undefined` chooses the newest complete one. */
  readonly at: string | undefined;
  readonly dataDir: string;
  /** The bucket to copy the files into; `undefined` puts them into the data folder. */
  readonly bucket?: OpenedBucket | undefined;
  /** Says if existing content of the data folder is an error, or is moved into a new folder inside it. */
  readonly existing: 'refuse' | 'move aside';
  readonly now: () => number;
  readonly progress: StartProgress;
  /** Called at each crash point, where tests end the process. */
  readonly reached: (moment: CrashPoint) => void;
};

export type RestoreResult = Awaited<ReturnType<typeof restore>>;

const MAX_CONCURRENT = 8;
/** The folder for the copy. While it exists, the content of the data folder is unchanged. */
const COPYING_FOLDER = 'restore-copying';
const LOCK_FILE = 'holdover.db.lock';

/**
 * Restores a backup into a data folder that no process uses. Copies and verifies the whole backup before it moves
 * existing content, and never deletes that content. Throws when the backup cannot be restored.
 */
export async function restore(options: RestoreOptions) {
  const { from, at, now } = options;
  const root = resolve(options.dataDir);
  const { chosen, passedOver } = chooseBackup(resolve(from), at);
  refuseNested(from, root);
  const isNew = mkdirSync(root, { recursive: true, mode: 0o700 }) !== undefined;
  const folderLock = tryLock(databasePath(root));
  if (!folderLock) throw new Error(inUseText(root));
  let isDone = false;
  try {
    const existingContent = contentOf(root);
    refuseSharedUse(root, now());
    if (existingContent.length > 0 && options.existing === 'refuse')
      throw new Error(notEmptyText(root));
    const { bucket } = options;
    const finishBucket =
      bucket && (await restoreIntoBucket(chosen, bucket, { ...options, dataDir: root }));
    await copyVerified(chosen, root, options);
    const aside = await swapContent(root, existingContent, options);
    await finishBucket?.();
    isDone = true;
    const { name, manifest } = chosen;
    // `aside` is where the former content of the data folder is, if there was any.
    return { name, manifest, passedOver, aside };
  } finally {
    await rm(join(root, COPYING_FOLDER), { recursive: true, force: true });
    folderLock.close();
    if ((isNew && !isDone) || chosen.manifest.ledger === 'redis') {
      await rm(join(root, LOCK_FILE), { force: true });
    }
    if (isNew && !isDone) await rm(root, { recursive: true, force: true });
  }
}

function chooseBackup(from: string, at: string | undefined) {
  if (!existsSync(from)) throw new Error(`there is no folder ${from}`);
  const backups = backupsIn(from);
  if (at !== undefined) return { chosen: findBackup(backups, at), passedOver: [] };
  const chosen = backups.complete.at(-1);
  const reasons = backups.unusable.map(({ name, why }) => `${name} ${why}`);
  if (chosen) return { chosen, passedOver: reasons };
  const why = reasons.length > 0 ? reasons.join('; ') : 'it has no backup at all';
  throw new Error(`${from} has nothing to restore: ${why}`);
}

function findBackup({ complete, unusable }: ReturnType<typeof backupsIn>, at: string): Backup {
  const chosen = complete.find(({ name }) => name === at);
  if (chosen) return chosen;
  const why = unusable.find(({ name }) => name === at)?.why;
  if (why !== undefined) throw new Error(`the backup ${at} ${why}`);
  const names = complete.map(({ name }) => name).join(', ') || 'none';
  throw new Error(`there is no backup ${at}; there are: ${names}`);
}

/** Returns the names in a data folder, without locks and without copies of an unfinished restore. */
function contentOf(root: string): readonly string[] {
  const ownNames =
    /^(restore-copying|copying|holdover\.db\.lock(-journal)?|lost\+found|set-aside)$/;
  return readdirSync(root).filter((name) => !ownNames.test(name));
}

function notEmptyText(root: string): string {
  return (
    `the data folder ${root} is not empty: give another --data-dir, or use --replace to move ` +
    'its content into its folder set-aside'
  );
}

async function copyVerified(
  { path, name, manifest }: Backup,
  root: string,
  { bucket, progress, reached }: RestoreOptions,
): Promise<void> {
  const copying = join(root, COPYING_FOLDER);
  await rm(copying, { recursive: true, force: true });
  const dir = join(copying, 'on-their-way');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const files = manifest.files.filter((file) => !bucket || !belongsInBucket(file.path));
  const onFile = progress(totalOf(files));
  await forEachConcurrently(MAX_CONCURRENT, files, async ({ path: file, hash, sizeBytes }) => {
    const copied = await copyTo(join(path, file), join(copying, file), { dir, hash });
    if (!copied.ok) throw new Error(`the backup ${name} is damaged: ${file} is ${copied.why}`);
    onFile(sizeBytes);
    reached('restore-file');
  });
  await rm(dir, { recursive: true });
  if (bucket) placeBucketOf(copying, bucket.identity.url);
  if (manifest.ledger === 'sqlite') verifyDatabase(copying, name, manifest);
  for (const folder of await foldersOf(copying)) await syncPath(folder);
}

/** Throws when the database is damaged, or names files that are neither in the backup nor listed as missing. */
function verifyDatabase(folder: string, name: string, manifest: Manifest): void {
  const database = databasePath(folder);
  const { state, errors } = inspectDatabase(database);
  if (state !== 'ok') {
    throw new Error(`the backup ${name} is damaged: its database is ${state}: ${errors[0]}`);
  }
  const known = new Set([
    ...manifest.files.map(({ path }) => path),
    ...manifest.missing.map(({ hash }) => blobPath(hash)),
  ]);
  const missingBlobs = recordedBlobs(database).filter(({ hash }) => !known.has(blobPath(hash)));
  if (missingBlobs.length === 0) return;
  throw new Error(`the backup ${name} lacks ${missingBlobs.length} files that its records name`);
}

async function foldersOf(root: string): Promise<readonly string[]> {
  const files = await filesBelow(root);
  return [...new Set(files.map((path) => join(root, path, '..'))), root];
}

/**
 * Moves the copy into place, and existing content into a new folder, which it returns. All renames stay inside the data
 * folder, because that may be a mounted volume.
 */
async function swapContent(
  root: string,
  existingContent: readonly string[],
  { now, reached }: RestoreOptions,
): Promise<string | undefined> {
  const unfinished = join(root, UNFINISHED_RESTORE);
  const aside = existingContent.length > 0 ? makeAsideFolder(root, new Date(now())) : undefined;
  const unfinishedCopies = existingContent.filter((name) => name === UNFINISHED_RESTORE);
  for (const name of unfinishedCopies) await rename(join(root, name), join(aside ?? root, name));
  await rename(join(root, COPYING_FOLDER), unfinished);
  await syncPath(root);
  for (const name of existingContent) {
    if (!unfinishedCopies.includes(name)) await rename(join(root, name), join(aside ?? root, name));
    reached('restore-aside');
  }
  for (const name of readdirSync(unfinished).toSorted(databaseLast)) {
    await rename(join(unfinished, name), join(root, name));
    reached('restore-placed');
  }
  await rm(unfinished, { recursive: true });
  await syncPath(root);
  return aside;
}

function databaseLast(a: string, b: string): number {
  return Number(a === 'holdover.db') - Number(b === 'holdover.db');
}
