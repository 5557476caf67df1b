import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { chmod, lstat, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import type { CrashPoint } from '../../lib/crash-point.ts';
import { packageVersion } from '../../config/version.ts';
import type { RecordedBlob } from '../../ledger/sqlite/inspect.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import type { BucketFiles } from './bucket-files.ts';
import { type BlobCopier, createBlobCopier, manifestFields } from './blobs.ts';
import { hashFile } from '../../lib/hash.ts';
import { syncPath } from '../../lib/durability.ts';
import { copyTo, linkTo, filesBelow, refuseNested, tryLock } from './copy.ts';
import {
  BACKUP_LOCK,
  type Backup,
  finishPartial,
  backupsIn,
  openBackupFolder,
  partialPath,
  removeBackup,
} from './backups.ts';
import { type ListedFile, writeManifest } from './manifest.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import { type RecordedFiles, blobPath } from './records.ts';

/** Small files at the top of a data folder that a restore needs: its secret and its ids. */
const IDENTITY_FILES = ['secret.key', 'folder.id', 'ledger.id'] as const;

export type BackupOptions = {
  readonly dataDir: string;
  /** The bucket that has the files; `undefined` when they are in the data folder. */
  readonly bucket?: BucketFiles | undefined;
  /** The folder of backups. Each call adds a backup to it. */
  readonly into: string;
  /** Opens the records of the ledger. Throws when they cannot be backed up. */
  readonly openRecords: () => RecordedFiles;
  /** The number of complete backups to keep; `undefined` keeps all. */
  readonly keep: number | undefined;
  readonly now: () => number;
  readonly progress: StartProgress;
  /** Called at each crash point, where tests end the process. */
  readonly reached: (moment: CrashPoint) => void;
};

/** The finished backup: its name, the number of files, the copied ones, missing ones, and removed older backups. */
export type BackupResult = Awaited<ReturnType<typeof backUpLocked>>;

const MAX_CONCURRENT = 8;
/**
 * The maximum number of times that the records are copied. They are copied again when files that they name were
 * removed.
 */
const MAX_PASSES = 10;

/**
 * Backs up a data folder, which a server may use meanwhile. Throws when the backup cannot be finished.
 *
 * A server writes a file before it records it, and removes the record before the file. So most files are copied first,
 * then the records, then the files that were added meanwhile. A file that was removed meanwhile is no longer on record:
 * the records are copied again, and then no longer name it.
 */
export async function backUp(options: BackupOptions): Promise<BackupResult> {
  const into = resolve(options.into);
  if (!existsSync(options.dataDir)) throw new Error(`there is no data folder ${options.dataDir}`);
  refuseNested(into, options.dataDir);
  openBackupFolder(into);
  const backupLock = tryLock(join(into, BACKUP_LOCK));
  if (!backupLock) throw new Error(`another backup into ${into} is running`);
  try {
    return await backUpLocked({ ...options, into, records: options.openRecords() });
  } finally {
    backupLock.close();
  }
}

type OpenedBackup = BackupOptions & { readonly records: RecordedFiles };

async function backUpLocked(options: OpenedBackup) {
  const { dataDir, into, records, now, reached } = options;
  const partial = partialPath(into);
  const createdAtMs = now();
  const { complete } = backupsIn(into);
  await prepare(partial);
  const smallFiles = await copySmallFiles(options, complete.at(-1));
  const source = sourceOf(smallFiles, dataDir);
  refuseOtherSource(source, complete, into);
  const blobs = createBlobCopier({
    dataDir,
    bucket: options.bucket,
    partial,
    previous: complete.at(-1),
    dir: copyingFolder(partial),
  });
  const { named, failedHashes } = await copyBlobs(options, partial, blobs);
  reached('backup-copied');
  const files = [
    ...smallFiles,
    ...(await listDatabase(options, partial)),
    ...listBlobs(named, blobs),
  ];
  await removeUnlisted(partial, new Set(files.map(({ path }) => path)));
  await syncAll(partial);
  const missing = named.flatMap(({ hash }) => {
    const why = failedHashes.get(hash);
    return why === undefined ? [] : [{ hash, why }];
  });
  const common = { format: 1, holdover: packageVersion(), ledger: records.kind } as const;
  const createdAt = new Date(createdAtMs).toISOString();
  writeManifest(partial, { ...common, createdAt, source, files, missing });
  reached('backup-listed');
  await syncPath(partial);
  const name = await finishPartial(into, createdAtMs);
  await syncPath(into);
  const removed = await removeOld(into, options.keep);
  return { name, files: files.length, copied: blobs.copied, missing, removed };
}

/**
 * Makes the folder of the unfinished backup. Keeps intact blobs that an earlier process left there, and removes the
 * rest.
 */
async function prepare(partial: string): Promise<void> {
  mkdirSync(partial, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(partial)) {
    if (name !== 'blobs') await rm(join(partial, name), { recursive: true, force: true });
  }
  await forEachConcurrently(
    MAX_CONCURRENT,
    await filesBelow(join(partial, 'blobs')),
    async (path) => {
      const whole = join(partial, 'blobs', path);
      const { hash } = await hashFile(whole);
      if (blobPath(hash) !== join('blobs', path)) await rm(whole, { force: true });
    },
  );
  mkdirSync(copyingFolder(partial), { mode: 0o700 });
}

/** The folder for files while they are copied. */
function copyingFolder(partial: string): string {
  return join(partial, 'copying');
}

/**
 * Copies the ids, the secret and the user data. Clients can change these under the same name, so they are read each
 * time.
 */
async function copySmallFiles(
  { dataDir, bucket, into }: BackupOptions,
  last: Backup | undefined,
): Promise<readonly ListedFile[]> {
  const partial = partialPath(into);
  const previousFiles = new Map(last?.manifest.files.map((file) => [file.path, file]));
  const inBucket = new Set(await bucket?.listSmall());
  const userData = await filesBelow(join(dataDir, 'userdata'));
  const inFolder = [...IDENTITY_FILES, ...userData.map((path) => join('userdata', path))];
  const paths = [...inBucket, ...inFolder.filter((path) => !inBucket.has(path))];
  const listed: ListedFile[] = [];
  await forEachConcurrently(MAX_CONCURRENT, paths, async (path) => {
    const [to, how] = [join(partial, path), { dir: copyingFolder(partial) }];
    const copied =
      bucket && inBucket.has(path)
        ? await bucket.copyTo(path, to, how)
        : await copyTo(join(dataDir, path), to, how);
    if (!copied.ok) {
      if (copied.why === 'absent') return;
      throw new Error(`${join(dataDir, path)} cannot be read`);
    }
    const copy = { ...manifestFields(copied), path: path.split(sep).join('/') };
    const previous = previousFiles.get(copy.path);
    const isSame = previous?.hash === copy.hash;
    // The time of a file from a bucket is the time of its copy, so the time in the previous backup is kept.
    const file = isSame && inBucket.has(path) ? previous : copy;
    if (last && isSame) await linkUnchanged(last, partial, file);
    listed.push(file);
  });
  return listed.toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/** Replaces a copy by a hard link to the same file of the previous backup, which saves space. */
async function linkUnchanged(last: Backup, partial: string, file: ListedFile): Promise<void> {
  const previousPath = join(last.path, file.path);
  const link = join(copyingFolder(partial), randomUUID());
  const stats = await lstat(previousPath).catch(() => undefined);
  if (stats === undefined || Math.round(stats.mtimeMs) !== file.modifiedAtMs) return;
  if (await linkTo(previousPath, link, file.sizeBytes))
    await rename(link, join(partial, file.path));
  await rm(link, { force: true });
}

/**
 * Copies the records and all files that they name. Repeats this while files disappear, at most `MAX_PASSES` times.
 * Returns the files on record, and by hash why some could not be copied.
 */
async function copyBlobs(
  { records, progress, reached }: OpenedBackup,
  partial: string,
  blobs: BlobCopier,
) {
  const first = await records.list();
  const onFile = progress(totalOf(first));
  async function copyAll(batch: readonly RecordedBlob[]): Promise<Map<string, string>> {
    const failedHashes = new Map<string, string>();
    await forEachConcurrently(MAX_CONCURRENT, batch, async (blob) => {
      const isNew = blobs.has(blob.hash) === undefined;
      const why = await blobs.copy(blob);
      if (why !== undefined) failedHashes.set(blob.hash, why);
      else if (isNew) onFile(blob.sizeBytes);
      reached('backup-file');
    });
    return failedHashes;
  }
  let previousFailures = await copyAll(first);
  for (let pass = 1; ; pass++) {
    reached('backup-records');
    const named = await records.save(partial);
    const failedHashes = await copyAll(named);
    const isStable = [...failedHashes.keys()].every((hash) => previousFailures.has(hash));
    if (isStable || pass === MAX_PASSES) return { named, failedHashes };
    previousFailures = failedHashes;
  }
}

async function listDatabase(
  { records }: OpenedBackup,
  partial: string,
): Promise<readonly ListedFile[]> {
  if (records.kind !== 'sqlite') return [];
  const path = 'holdover.db';
  await chmod(join(partial, path), 0o600);
  const { mtimeMs } = await lstat(join(partial, path));
  const read = await hashFile(join(partial, path));
  return [{ path, ...read, modifiedAtMs: Math.round(mtimeMs) }];
}

function listBlobs(named: readonly RecordedBlob[], blobs: BlobCopier): readonly ListedFile[] {
  return named.flatMap(({ hash }) => blobs.has(hash) ?? []);
}

/** Removes files that were on record when the backup began, but not when the records were copied. */
async function removeUnlisted(partial: string, listed: ReadonlySet<string>): Promise<void> {
  await rm(copyingFolder(partial), { recursive: true, force: true });
  for (const path of await filesBelow(partial)) {
    if (!listed.has(path.split(sep).join('/'))) await rm(join(partial, path), { force: true });
  }
}

/** Syncs the database, which SQLite does not sync when it copies, and the folders, where the hard links are. */
async function syncAll(partial: string): Promise<void> {
  const database = join(partial, 'holdover.db');
  if (existsSync(database)) await syncPath(database);
  const folders = new Set((await filesBelow(partial)).map((path) => dirname(join(partial, path))));
  for (const folder of folders) await syncPath(folder);
  if (existsSync(join(partial, 'blobs'))) await syncPath(join(partial, 'blobs'));
}

async function removeOld(into: string, keep: number | undefined): Promise<readonly string[]> {
  if (keep === undefined) return [];
  const old = backupsIn(into).complete.slice(0, -keep);
  for (const generation of old) await removeBackup(generation);
  return old.map(({ name }) => name);
}

/** Returns the hash that identifies the data folder: that of its secret, or with Redis that of its `folder.id`. */
function sourceOf(smallFiles: readonly ListedFile[], dataDir: string): string {
  const hashes = ['secret.key', 'folder.id'].flatMap(
    (name) => smallFiles.find(({ path }) => path === name)?.hash ?? [],
  );
  if (hashes[0] !== undefined) return hashes[0];
  throw new Error(`${dataDir} is not a data folder: it has neither secret.key nor folder.id`);
}

function refuseOtherSource(source: string, complete: readonly Backup[], into: string): void {
  if (complete.every(({ manifest }) => manifest.source === source)) return;
  throw new Error(`${into} has backups of another data folder: give this one a folder of its own`);
}
