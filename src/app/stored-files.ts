import { join } from 'node:path';
import { type FilesSource, bucketUrl } from '../config/files.ts';
import type { DataDir } from '../data-folder/data-dir.ts';
import type { Logger } from '../observability/log.ts';
import type { Blobs } from '../blobs/blobs.ts';
import type { OpenedBucket } from '../blobs/bucket/open-bucket.ts';
import { createFolderBlobs } from '../blobs/folder/folder-blobs.ts';

/** The place of the bytes of files: below the data directory, or in a bucket. */
export type StoredFiles = {
  readonly blobs: Blobs;
  /** `undefined` when the files are below the data directory. */
  readonly bucket: OpenedBucket | undefined;
  /** Resolves when the files are gone, or were replaced by those of another ledger. */
  readonly lost: Promise<Error>;
  close(): void;
};

/**
 * Opens the bucket of `--files`. Throws one sentence that names the bucket when it cannot be used.
 */
export async function openBucketOf(
  source: FilesSource,
  log: Logger,
): Promise<OpenedBucket | undefined> {
  if (source.kind === 'folder') return undefined;
  try {
    // Imported on demand: the packages of its client are optional.
    const { openBucket } = await import('../blobs/bucket/open-bucket.ts');
    return await openBucket({ source, log });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause;
    throw new Error(`--files ${bucketUrl(source)} needs packages: npm install ${PACKAGES}`, {
      cause,
    });
  }
}

const PACKAGES = '@aws-sdk/client-s3 @aws-sdk/lib-storage @aws-sdk/s3-request-presigner';

/** Returns the files of a data directory. A bucket is watched. */
export function watchFiles(dir: DataDir, bucket: OpenedBucket | undefined): StoredFiles {
  if (bucket === undefined || dir.bucketId === undefined) {
    const blobs = createFolderBlobs(join(dir.root, 'blobs'));
    return { blobs, bucket: undefined, lost: new Promise(() => {}), close: () => {} };
  }
  const watch = bucket.watch(dir.bucketId);
  return {
    blobs: bucket.blobs,
    bucket,
    lost: watch.lost,
    close() {
      watch.close();
      bucket.close();
    },
  };
}
