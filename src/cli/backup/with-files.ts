import { join } from 'node:path';
import { openBucketOf } from '../../app/stored-files.ts';
import type { FilesSource } from '../../config/files.ts';
import { refuseOtherPlace } from '../../data-folder/data-dir.ts';
import { withOpen } from '../with-open.ts';
import { silentLogger } from '../../observability/log.ts';
import type { Blobs } from '../../upstreams/blobs.ts';
import { createFolderBlobs } from '../../upstreams/folder/folder-blobs.ts';
import { type FilesPlace, placeInBucket, placeInFolder } from './places.ts';

/** The settings that say where the files of a ledger are. */
export type FilesLocation = { readonly dataDir: string; readonly files: FilesSource };

/** The files of a ledger, in the data directory or in a bucket. */
export type OpenedFiles = {
  readonly place: FilesPlace;
  /** The bytes of uploads and outputs. */
  readonly blobs: Blobs;
  /** The id of the ledger that recorded the files, if it is known. */
  readonly recordedBy: string | undefined;
};

/**
 * Calls `work` with the files of these settings, and closes them afterwards. Throws when the files are in another
 * place, or are not complete there.
 */
export async function withFiles<T>(
  { dataDir, files }: FilesLocation,
  work: (opened: OpenedFiles) => Promise<T>,
): Promise<T> {
  return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
    await refuseOtherPlace(dataDir, bucket?.identity);
    const place = bucket ? placeInBucket(bucket) : placeInFolder(dataDir);
    const blobs =
      bucket?.blobs ?? createFolderBlobs(join(dataDir, 'blobs'), join(dataDir, 'spool'));
    return await work({ place, blobs, recordedBy: await place.readId('ledger.id') });
  });
}
