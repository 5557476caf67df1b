import { existsSync, mkdirSync, readdirSync, createReadStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { LedgerSource } from '../../config/ledger.ts';
import { UNFINISHED_RESTORE, databasePath, placeBucketOf } from '../../data-folder/data-dir.ts';
import { makeAsideFolder } from '../../data-folder/set-aside.ts';
import { refuseSharedUse } from '../../data-folder/spool-folder.ts';
import type { StoredRecord } from '../../ledger/records.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import type { CrashPoint } from '../../lib/crash-point.ts';
import { syncPath } from '../../lib/durability.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import { copyInto, filesBelow, inUseText, refuseNested, tryLock } from './copy.ts';
import { type BackupHeader, type MissingBlob, type UserFile, blobPath, linesOf } from './format.ts';
import { openLedgerTarget } from './ledger-target.ts';
import { loadRecords } from './load-records.ts';
import { type FilesPlace, placeInBucket, placeInFolder } from './places.ts';

export type RestoreOptions = {
  /** The folder of the backup. */
  readonly from: string;
  readonly dataDir: string;
  readonly ledger: LedgerSource;
  /** The bucket for the files; `undefined` puts them into the data folder. */
  readonly bucket: OpenedBucket | undefined;
  /** Says if existing content of the data folder is an error, or is moved into a new folder inside it. */
  readonly existing: 'refuse' | 'move aside';
  readonly now: () => number;
  readonly progress: StartProgress;
  /** Called at each crash point, where tests end the process. */
  readonly reached: (moment: CrashPoint) => void;
};

/** A restored backup. */
export type RestoreResult = Omit<BackupContent, 'blobs' | 'userFiles'> & {
  /** Where the former content of the data folder is, if there was any. */
  readonly aside: string | undefined;
};

type BackupContent = {
  readonly header: BackupHeader;
  readonly records: number;
  /** The size of all bytes in the backup, by their hash. */
  readonly blobs: ReadonlyMap<string, number>;
  readonly userFiles: readonly UserFile[];
  readonly missing: readonly MissingBlob[];
};

const MAX_CONCURRENT = 8;
/** The folder for the copy. While it exists, the content of the data folder is unchanged. */
const COPYING_FOLDER = 'restore-copying';

/**
 * Restores a backup into a data folder that no process uses. Copies and verifies everything before it moves existing
 * content, and never deletes that content. Throws when the backup cannot be restored.
 */
export async function restore(options: RestoreOptions): Promise<RestoreResult> {
  const from = resolve(options.from);
  const root = resolve(options.dataDir);
  const content = await contentOf(from);
  refuseNested(from, root);
  const isNew = mkdirSync(root, { recursive: true, mode: 0o700 }) !== undefined;
  const lock = tryLock(databasePath(root));
  if (!lock) throw new Error(inUseText(root));
  let isDone = false;
  try {
    const existing = namesIn(root);
    refuseSharedUse(root, options.now());
    if (existing.length > 0 && options.existing === 'refuse') throw new Error(notEmptyText(root));
    const aside = await restoreInto({ ...options, from, root }, content, existing);
    isDone = true;
    const { header, records, missing } = content;
    return { header, records, missing, aside };
  } finally {
    await rm(join(root, COPYING_FOLDER), { recursive: true, force: true });
    lock.close();
    if ((isNew && !isDone) || options.ledger.kind === 'redis')
      await rm(`${databasePath(root)}.lock`, { force: true });
    if (isNew && !isDone) await rm(root, { recursive: true, force: true });
  }
}

/** Reads the whole backup except its blobs. Throws when it is not as it was written. */
async function contentOf(from: string): Promise<BackupContent> {
  if (!existsSync(from)) throw new Error(`there is no folder ${from}`);
  let header: BackupHeader | undefined;
  let records = 0;
  const blobs = new Map<string, number>();
  const userFiles: UserFile[] = [];
  const missing: MissingBlob[] = [];
  for await (const line of linesOf(from)) {
    if (line.kind === 'backup') header = line;
    else if (line.kind === 'userFile') userFiles.push(line);
    else if (line.kind === 'missing') missing.push(line);
    else records += 1;
    if (line.kind === 'assets') blobs.set(line.row.hash, line.row.sizeBytes);
  }
  for (const { hash } of missing) blobs.delete(hash);
  if (header === undefined) throw new Error(`the backup ${from} is empty`);
  return { header, records, blobs, userFiles, missing };
}

/** Returns the names in a data folder, without locks and without copies of an unfinished restore. */
function namesIn(root: string): readonly string[] {
  const ownNames = /^(restore-copying|holdover\.db\.lock(-journal)?|lost\+found|set-aside)$/;
  return readdirSync(root).filter((name) => !ownNames.test(name));
}

function notEmptyText(root: string): string {
  return (
    `the data folder ${root} is not empty: give another --data-dir, or use --replace to move ` +
    'its content into its folder set-aside'
  );
}

type Opened = RestoreOptions & { readonly root: string };

async function restoreInto(
  options: Opened,
  content: BackupContent,
  existing: readonly string[],
): Promise<string | undefined> {
  const { from, root, bucket, progress, reached } = options;
  const { header } = content;
  const copying = join(root, COPYING_FOLDER);
  await rm(copying, { recursive: true, force: true });
  mkdirSync(copying, { mode: 0o700 });
  const place = bucket ? placeInBucket(bucket) : placeInFolder(copying);
  const target = await openLedgerTarget(options.ledger, copying, header);
  try {
    await place.begin();
    await copyFiles(options, content, place);
    const onRecord = progress({ records: content.records });
    await loadRecords(recordsOf(from), target, (moment) => {
      onRecord(0);
      reached(moment);
    });
    await target.complete();
    await place.writeId('ledger.id', target.ledgerId);
    await place.writeId('folder.id', header.folderId);
    if (bucket) placeBucketOf(copying, bucket.identity.url);
    const folders = (await filesBelow(copying)).map((path) => dirname(join(copying, path)));
    for (const folder of new Set([...folders, copying])) await syncPath(folder);
    const aside = await swapContent(options, existing);
    await place.finish();
    await target.finish();
    return aside;
  } finally {
    await target.close();
  }
}

async function* recordsOf(from: string): AsyncGenerator<StoredRecord> {
  for await (const line of linesOf(from)) if ('row' in line) yield line;
}

type RestoredFile = Pick<UserFile, 'path' | 'hash' | 'sizeBytes'> & {
  readonly modifiedAtMs?: number;
};

async function copyFiles(
  { from, root, progress, reached }: Opened,
  { blobs, userFiles }: BackupContent,
  place: FilesPlace,
): Promise<void> {
  const dir = join(root, COPYING_FOLDER, 'copying');
  mkdirSync(dir, { mode: 0o700 });
  const files: readonly RestoredFile[] = [
    ...[...blobs].map(([hash, sizeBytes]) => ({ path: blobPath(hash), hash, sizeBytes })),
    ...userFiles.map((file) => ({ ...file, path: `userdata/${file.path}` })),
  ];
  const onFile = progress(totalOf(files));
  await forEachConcurrently(
    MAX_CONCURRENT,
    files,
    async ({ path, hash, sizeBytes, modifiedAtMs }) => {
      const source = join(from, blobPath(hash));
      const open = async () => (existsSync(source) ? createReadStream(source) : undefined);
      const copy = await copyInto(dir, open, hash);
      if (typeof copy === 'string')
        throw new Error(`the backup ${from} is damaged: ${blobPath(hash)} (${path}) is ${copy}`);
      await place.put(path, copy, modifiedAtMs);
      await rm(copy.path, { force: true });
      onFile(sizeBytes);
      reached('restore-file');
    },
  );
  await rm(dir, { recursive: true });
}

/**
 * Moves the copy into place, and existing content into a new folder, which it returns. All renames stay inside the data
 * folder, because that may be a mounted volume.
 */
async function swapContent(
  { root, now, reached }: Opened,
  existing: readonly string[],
): Promise<string | undefined> {
  const unfinished = join(root, UNFINISHED_RESTORE);
  const aside = existing.length > 0 ? makeAsideFolder(root, new Date(now())) : undefined;
  const unfinishedCopies = existing.filter((name) => name === UNFINISHED_RESTORE);
  for (const name of unfinishedCopies) await rename(join(root, name), join(aside ?? root, name));
  await rename(join(root, COPYING_FOLDER), unfinished);
  await syncPath(root);
  for (const name of existing) {
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
