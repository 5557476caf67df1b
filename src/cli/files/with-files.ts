import { join } from 'node:path';
import { openBucketOf } from '../../app/stored-files.ts';
import type { FilesSource } from '../../config/files.ts';
import { refuseOtherPlace } from '../../data-folder/data-dir.ts';
import { withOpen } from '../with-open.ts';
import { silentLogger } from '../../observability/log.ts';
import type { Blobs } from '../../upstreams/blobs.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import { createFolderBlobs } from '../../upstreams/folder/folder-blobs.ts';
import { type FilesPlace, placeInBucket, placeInFolder } from './places.ts';

export type FilesLocation = { readonly dataDir: string; readonly files: FilesSource };

/** The files of a ledger where they are. */
export type OpenedFiles = {
  readonly place: FilesPlace;
  /** Those that are named by the hash of their bytes. */
  readonly blobs: Blobs;
  /** The ledger that recorded them, as far as they tell. */
  readonly recordedBy: string | undefined;
  /** `undefined`: they are in the data directory. */
  readonly bucket: OpenedBucket | undefined;
};

/** Works with the files of these settings; refuses a place that has not the files, or not all of them. */
export async function withFiles<T>(
  { dataDir, files }: FilesLocation,
  work: (opened: OpenedFiles) => Promise<T>,
): Promise<T> {
  return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
    await refuseOtherPlace(dataDir, bucket?.identity);
    const place = bucket ? placeInBucket(bucket, dataDir) : placeInFolder(dataDir);
    const blobs = bucket?.blobs ?? createFolderBlobs(join(dataDir, 'blobs'));
    return await work({ place, blobs, recordedBy: await place.readSmall('ledger.id'), bucket });
  });
}
