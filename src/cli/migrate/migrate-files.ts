import { type BucketSource, bucketUrl } from '../../config/files.ts';
import type { LedgerSource } from '../../config/ledger.ts';
import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import { bucketOf, makeDataDir, placeBucketOf } from '../../data-folder/data-dir.ts';
import { reached } from '../../lib/crash-point.ts';
import { withOpen } from '../with-open.ts';
import { silentLogger } from '../../observability/log.ts';
import { type OpenedBucket, openBucket } from '../../upstreams/bucket/open-bucket.ts';
import { copyFiles, finishCopy } from '../files/copy-files.ts';
import { type FilesPlace, placeInBucket, placeInFolder, removeCopying } from '../files/places.ts';
import type { StartProgress } from '../progress.ts';
import { type OpenSide, openSource } from './open-sides.ts';

export type FilesMigrationOptions = {
  readonly dataDir: string;
  readonly ledger: LedgerSource;
  readonly bucket: BucketSource;
  readonly to: 'bucket' | 'folder';
  readonly progress: StartProgress;
};

type Places = { readonly from: FilesPlace; readonly to: FilesPlace };

/**
 * Copies the files of a ledger from its data folder into a bucket, or back, and verifies them. Returns the number of
 * files. Does not change the source. Call it again after an interruption. Throws when the files and the ledger do not
 * belong together.
 */
export async function migrateFiles(options: FilesMigrationOptions): Promise<number> {
  const { dataDir, bucket: source } = options;
  const bucket = await openBucket({ source, env: process.env, log: silentLogger() });
  return withOpen(bucket, async () =>
    withOpen(await openSource(options.ledger, dataDir), (ledger) =>
      copyOf(options, ledger, placesOf(options, bucket)),
    ),
  );
}

function placesOf({ dataDir, to }: FilesMigrationOptions, opened: OpenedBucket): Places {
  const folder = placeInFolder(dataDir);
  const bucket = placeInBucket(opened, dataDir);
  return to === 'bucket' ? { from: folder, to: bucket } : { from: bucket, to: folder };
}

async function copyOf(
  options: FilesMigrationOptions,
  ledger: OpenSide,
  places: Places,
): Promise<number> {
  const { dataDir, progress } = options;
  const { from, to } = places;
  await ledger.refuseUse();
  const folderId = await requireFiles(options, ledger, places);
  makeDataDir(dataDir);
  try {
    const files = await copyFiles({ from, to, id: folderId, progress });
    await ledger.refuseUse();
    await giveTo(options, ledger, { to, folderId });
    return files;
  } finally {
    removeCopying(dataDir);
  }
}

/**
 * Gives the files to the ledger. The order matters: servers may use the source until `placeBucketOf`, and the target
 * after `finishCopy`.
 */
async function giveTo(
  { dataDir, bucket, to: kind }: FilesMigrationOptions,
  { identity }: OpenSide,
  { to, folderId }: { readonly to: FilesPlace; readonly folderId: string },
): Promise<void> {
  await to.writeSmall('ledger.id', identity.id);
  await to.writeSmall('folder.id', folderId);
  reached('copy-named');
  placeBucketOf(dataDir, kind === 'bucket' ? bucketUrl(bucket) : undefined);
  reached('copy-bound');
  await finishCopy(to);
}

/** Returns the id of the source. Throws when the source does not have all files of the ledger. */
async function requireFiles(
  { dataDir, bucket, to: kind }: FilesMigrationOptions,
  { identity }: OpenSide,
  { from, to }: Places,
): Promise<string> {
  const url = bucketUrl(bucket);
  const named = bucketOf(dataDir);
  const isBound = kind === 'bucket' ? named === url : named === undefined;
  const isUnfinished = (await to.readSmall(UNFINISHED_COPY)) !== undefined;
  if (named !== undefined && named !== url)
    throw new Error(`the files of --data-dir ${dataDir} are in ${named}`);
  if (kind === 'bucket' && isBound && !isUnfinished)
    throw new Error(`the files of --data-dir ${dataDir} are in ${url} already`);
  if ((await from.readSmall(UNFINISHED_COPY)) !== undefined)
    throw new Error(`${from.name} has a copy of files that was interrupted`);
  const folderId = await from.readSmall('folder.id');
  const recordedBy = await from.readSmall('ledger.id');
  const isItsOwn = recordedBy === identity.id && folderId === (await identity.folder());
  if (!isItsOwn || folderId === undefined)
    throw new Error(`${from.name} does not have the files of this ledger`);
  return folderId;
}
