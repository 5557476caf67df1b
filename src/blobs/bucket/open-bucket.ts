import type { BucketIdentity } from '../../data-folder/bind-bucket.ts';
import { type BucketSource, bucketUrl } from '../../config/files.ts';
import { type Clock, monotonicClock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import type { Blobs } from '../blobs.ts';
import { createBucketBlobs } from './bucket-blobs.ts';
import { createCalls, openClient } from './client.ts';
import { Objects, type TransferSizes } from './objects.ts';

/** A bucket that this process may read and write. */
export type OpenedBucket = {
  readonly blobs: Blobs;
  readonly objects: Objects;
  readonly identity: BucketIdentity;
  /** Resolves when the bucket has lost its files, or has the files of another ledger. */
  watch(folderId: string): { readonly lost: Promise<Error>; close(): void };
  close(): void;
};

export type OpenBucketOptions = {
  readonly source: BucketSource;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly sizes?: TransferSizes;
};

/** How long a failed call is repeated: a caller gets an answer soon, a job waits for the bucket. */
const RETRY_FOR_MS = { caller: 5000, job: 60_000 };
const WATCH_EVERY_MS = 10_000;
/** A single check that finds nothing may be a fault of the connection. */
const CHECKS_BEFORE_LOSS = 2;

/** Opens a bucket. Throws one sentence that names it and the reason when that fails. */
export async function openBucket(options: OpenBucketOptions): Promise<OpenedBucket> {
  const { source, log, sizes, clock = monotonicClock } = options;
  const call = createCalls(source.bucket, log);
  const s3 = openClient(source, RETRY_FOR_MS.caller, clock);
  const jobS3 = openClient(source, RETRY_FOR_MS.job, clock);
  const objects = new Objects(s3, source, call, sizes);
  const jobObjects = new Objects(jobS3, source, call, sizes);
  const identity = identityOf(bucketUrl(source), objects);
  function close(): void {
    s3.destroy();
    jobS3.destroy();
  }
  try {
    await requireAccess(objects);
  } catch (cause) {
    close();
    throw new Error(`--files ${identity.url} cannot be used: ${(cause as Error).message}`, {
      cause,
    });
  }
  return {
    blobs: createBucketBlobs(objects, jobObjects, clock),
    objects,
    identity,
    watch(folderId) {
      const ended = new AbortController();
      const lost = watchUntilLost(identity, folderId, { clock, signal: ended.signal });
      return { lost, close: () => ended.abort() };
    },
    close,
  };
}

/** Lists, writes and removes an object, because a later refusal would fail a job. */
async function requireAccess(objects: Objects): Promise<void> {
  await holdsAny(objects, '');
  await objects.put('access-check', new Uint8Array());
  await objects.remove('access-check');
}

async function holdsAny(objects: Objects, folder: string): Promise<boolean> {
  for await (const _object of objects.list(folder)) return true;
  return false;
}

function identityOf(url: string, objects: Objects): BucketIdentity {
  return {
    url,
    holdsFiles: async () =>
      (await holdsAny(objects, 'blobs/')) || (await holdsAny(objects, 'userdata/')),
    readId: (name) => objects.text(name),
    // On a server without conditional writes the later of two first starts wins. Both read that id
    // afterwards.
    createId: async (name, id) => {
      if ((await objects.stat(name)) === undefined)
        await objects.put(name, Buffer.from(id), { onlyNew: true });
    },
    writeId: async (name, id) => void (await objects.put(name, Buffer.from(id))),
  };
}

/** Resolves with the error of a lost bucket. Does not settle when the watch is ended. */
async function watchUntilLost(
  identity: BucketIdentity,
  folderId: string,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Error> {
  for (let losses = 0; losses < CHECKS_BEFORE_LOSS;) {
    await clock.sleep(WATCH_EVERY_MS, signal).catch(() => new Promise<never>(() => {}));
    // A bucket that refuses or does not answer is unavailable, not lost.
    const foundId = await identity.readId('folder.id').catch(() => folderId);
    losses = foundId === folderId ? 0 : losses + 1;
  }
  return new Error(
    `--files ${identity.url} was emptied or replaced while in use: nothing can be kept any more, so this ` +
      'process stops; start it again once the files are back',
  );
}
