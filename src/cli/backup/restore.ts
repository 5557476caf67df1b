import { createReadStream, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { LedgerSource } from '../../config/ledger.ts';
import { writeFileAtomically } from '../../data-folder/bind-ledger.ts';
import { UNFINISHED_RESTORE, databasePath, placeBucketOf } from '../../data-folder/data-dir.ts';
import type { StoredRecord } from '../../ledger/records.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { reached } from '../../lib/crash-point.ts';
import { syncPath } from '../../lib/durability.ts';
import { hashFile } from '../../lib/hash.ts';
import type { OpenedBucket } from '../../blobs/bucket/open-bucket.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import { withOpen } from '../with-open.ts';
import { copyInto, inUseText, refuseNested, tryLock } from './copy.ts';
import { type BackupHeader, type MissingBlob, type UserFile, blobPath, linesOf } from './format.ts';
import { type LedgerTarget, openDatabaseTarget, openRedisTarget } from './ledger-target.ts';
import { loadRecords } from './load-records.ts';
import { type FilesPlace, placeInBucket, placeInFolder } from './places.ts';

export type RestoreOptions = {
  /** The folder of the backup. */
  readonly from: string;
  readonly dataDir: string;
  readonly ledger: LedgerSource;
  /** The bucket for the files; `undefined` puts them into the data folder. */
  readonly bucket: OpenedBucket | undefined;
  readonly progress: StartProgress;
};

/** A backup without its bytes and records. */
export type BackupContent = {
  readonly header: BackupHeader;
  readonly records: number;
  readonly files: readonly RestoredFile[];
  readonly missing: readonly MissingBlob[];
};

/** A file of the backup, by its path in the data folder or bucket. */
type RestoredFile = Pick<UserFile, 'path' | 'hash' | 'sizeBytes'> & {
  readonly modifiedAtMs?: number;
};

const MAX_CONCURRENT = 8;
const COPYING_FOLDER = 'restore-copying';

/**
 * Restores a backup into an empty data folder. Verifies the whole backup before it changes anything. No server starts on
 * the folder before everything is in place; when the restore is interrupted, the next one begins anew.
 */
export async function restore(options: RestoreOptions): Promise<BackupContent> {
  const { ledger, bucket } = options;
  const from = resolve(options.from);
  const root = resolve(options.dataDir);
  const content = await contentOf(from);
  refuseNested(from, root);
  await verifyFiles(from, content, options.progress);
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const lock = tryLock(databasePath(root));
  if (!lock) throw new Error(inUseText(root));
  try {
    await begin(root);
    const { header } = content;
    const redis = ledger.kind === 'redis' ? await openRedisTarget(ledger.url, header) : undefined;
    await withOpen(redis, async () => {
      const place = bucket ? placeInBucket(bucket) : placeInFolder(root);
      await place.begin();
      // The database takes the same lock.
      if (!redis) lock.close();
      await withOpen(redis ?? openDatabaseTarget(root, header), (target) =>
        fill({ ...options, from, root, place, target }, content),
      );
    });
    return content;
  } finally {
    if (lock.isOpen) lock.close();
  }
}

/** Keeps servers out of the folder until `fill` is done. Removes what an interrupted restore has copied into it. */
async function begin(root: string): Promise<void> {
  const ownNames = /^(restore-unfinished|holdover\.db\.lock(-journal)?|lost\+found|set-aside)$/;
  const names = readdirSync(root).filter((name) => !ownNames.test(name));
  const mark = join(root, UNFINISHED_RESTORE);
  if (names.length > 0 && !existsSync(mark))
    throw new Error(
      `the data folder ${root} is not empty: give another --data-dir, or move its content into its folder set-aside`,
    );
  writeFileAtomically(mark, '');
  await syncPath(root);
  for (const name of names) await rm(join(root, name), { recursive: true });
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
  const files = [
    ...[...blobs].map(([hash, sizeBytes]) => ({ path: blobPath(hash), hash, sizeBytes })),
    ...userFiles.map((file) => ({ ...file, path: `userdata/${file.path}` })),
  ];
  return { header, records, files, missing };
}

async function verifyFiles(
  from: string,
  { files }: BackupContent,
  progress: StartProgress,
): Promise<void> {
  const onFile = progress(totalOf(files));
  await forEachConcurrently(MAX_CONCURRENT, files, async ({ path, hash, sizeBytes }) => {
    const source = join(from, blobPath(hash));
    if (!existsSync(source) || (await hashFile(source)).hash !== hash)
      throw new Error(`the backup ${from} is damaged: ${blobPath(hash)} (${path})`);
    onFile(sizeBytes);
  });
}

type Opened = RestoreOptions & {
  readonly root: string;
  readonly place: FilesPlace;
  readonly target: LedgerTarget;
};

/** Copies the files and records into their places, then lets servers start on them. */
async function fill(options: Opened, content: BackupContent): Promise<void> {
  const { from, root, bucket, place, target, progress } = options;
  await copyFiles(options, content);
  const onRecord = progress({ records: content.records });
  await loadRecords(recordsOf(from), target.ledger, () => {
    onRecord(0);
    reached('restore-record');
  });
  await target.complete();
  await place.writeId('ledger.id', target.ledgerId);
  await place.writeId('folder.id', content.header.folderId);
  if (bucket) placeBucketOf(root, bucket.identity.url);
  await rm(join(root, UNFINISHED_RESTORE));
  await syncPath(root);
  await place.finish();
  await target.finish();
}

async function* recordsOf(from: string): AsyncGenerator<StoredRecord> {
  for await (const line of linesOf(from)) if ('row' in line) yield line;
}

async function copyFiles(
  { from, root, progress, place }: Opened,
  { files }: BackupContent,
): Promise<void> {
  const dir = join(root, COPYING_FOLDER);
  mkdirSync(dir, { mode: 0o700 });
  const onFile = progress(totalOf(files));
  await forEachConcurrently(MAX_CONCURRENT, files, async (file) => {
    const source = join(from, blobPath(file.hash));
    const copy = await copyInto(dir, async () => createReadStream(source), file.hash);
    if (typeof copy === 'string') throw new Error(`${source} (${file.path}) is ${copy}`);
    await place.put(file.path, copy, file.modifiedAtMs);
    await rm(copy.path, { force: true });
    onFile(file.sizeBytes);
    reached('restore-file');
  });
  await rm(dir, { recursive: true });
}
