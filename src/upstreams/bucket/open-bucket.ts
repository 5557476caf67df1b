import { randomUUID } from 'node:crypto';
import type { BucketIdentity } from '../../data-folder/bind-bucket.ts';
import { type BucketSource, bucketUrl } from '../../config/files.ts';
import { type Clock, monotonicClock, systemClock } from '../../lib/clock.ts';
import type { StartUpload } from '../../protocol/job-api.ts';
import type { Logger } from '../../observability/log.ts';
import type { Blobs } from '../blobs.ts';
import { FOLDERS, createBucketBlobs } from './bucket-blobs.ts';
import { type BucketClient, createBucketClient } from './client.ts';
import { openCredentials } from './credentials.ts';
import { BucketError, refusalTextOf } from './errors.ts';
import { type Objects, TRANSFER_SIZES, type TransferSizes, createObjects } from './objects.ts';
import { createSigner } from './signer.ts';
import { createStagedUploads } from './staged-uploads.ts';

/** A bucket that this process may read and write. */
export type OpenedBucket = {
  readonly blobs: Blobs;
  readonly objects: Objects;
  /** Uploads a file while it arrives. */
  readonly startUpload: StartUpload;
  readonly identity: BucketIdentity;
  /** Resolves when the bucket has lost its files, or has the files of another ledger. */
  watch(folderId: string): { readonly lost: Promise<Error>; close(): void };
  close(): Promise<void>;
};

export type OpenBucketOptions = {
  readonly source: BucketSource;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly deadlineClock?: Clock;
  readonly sizes?: Partial<TransferSizes>;
};

/** A start with an unusable bucket is refused soon instead of being delayed. */
const START_PATIENCE = { retryForMs: 3000 };
const WATCH_EVERY_MS = 10_000;

/** Opens a bucket. Throws one sentence that names it and the reason when that fails. */
export async function openBucket(options: OpenBucketOptions): Promise<OpenedBucket> {
  const { source, env, log, sizes } = options;
  const { clock = systemClock, deadlineClock = monotonicClock } = options;
  const url = bucketUrl(source);
  let client: BucketClient | undefined;
  try {
    const credentials = await openCredentials(env);
    const signer = await createSigner({ credentials, region: source.region, clock });
    client = createBucketClient({ ...source, signer, deadlineClock, log });
    await requireAccess(client);
    const transferSizes = { ...TRANSFER_SIZES, ...sizes };
    const objects = createObjects(client, transferSizes);
    const { partBytes } = transferSizes;
    const staged = createStagedUploads(objects, { stagingFolder: FOLDERS.staging, partBytes });
    const opened = client;
    const identity = identityOf(url, objects);
    return {
      blobs: createBucketBlobs({ client, objects, staged, clock }),
      startUpload: staged.start,
      objects,
      identity,
      watch: (folderId) => watchBucket(identity, folderId, clock),
      close: () => opened.close(),
    };
  } catch (cause) {
    await client?.close();
    throw new Error(`--files ${url} ${reasonFor(cause)}`, { cause });
  }
}

/** Lists, writes and removes an object, because a later refusal would fail a job. */
async function requireAccess(client: BucketClient): Promise<void> {
  const query = { 'list-type': '2', 'max-keys': '1', prefix: client.fullKey('') };
  await client.done({ method: 'GET', query, ...START_PATIENCE });
  const key = `staging/${randomUUID()}`;
  await client.done({ method: 'PUT', key, body: new Uint8Array(), ...START_PATIENCE });
  await client.done({ method: 'DELETE', key, ...START_PATIENCE });
}

function reasonFor(cause: unknown): string {
  if (cause instanceof BucketError && cause.answer)
    return `cannot be used: ${refusalTextOf(cause.answer)}`;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return reason.startsWith('needs ') ? reason : `cannot be used: ${reason}`;
}

function identityOf(url: string, objects: Objects): BucketIdentity {
  return {
    url,
    async holdsFiles() {
      for (const folder of ['blobs/', 'userdata/'])
        for await (const _object of objects.list(folder)) return true;
      return false;
    },
    readId: (name) => objects.text(name),
    // On a server without conditional writes the later of two first starts wins. Both read that id
    // afterwards.
    createId: async (name, id) => {
      if ((await objects.head(name)) === undefined)
        await objects.put(name, Buffer.from(id), { onlyNew: true });
    },
    writeId: async (name, id) => void (await objects.put(name, Buffer.from(id))),
  };
}

/** A single check that finds nothing may be a fault of the connection. */
const CHECKS_BEFORE_LOSS = 2;

function watchBucket(identity: BucketIdentity, folderId: string, clock: Clock) {
  const ended = new AbortController();
  const lost = new Promise<Error>((resolve) => {
    void watchUntilLost(identity, folderId, { clock, signal: ended.signal }).then((error) => {
      if (error) resolve(error);
    });
  });
  return { lost, close: () => ended.abort() };
}

/** Returns the error of a lost bucket; `undefined` when the watch was ended. */
async function watchUntilLost(
  identity: BucketIdentity,
  folderId: string,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Error | undefined> {
  for (let losses = 0; losses < CHECKS_BEFORE_LOSS;) {
    try {
      await clock.sleep(WATCH_EVERY_MS, signal);
    } catch {
      return undefined;
    }
    losses = (await isSame(identity, folderId)) ? 0 : losses + 1;
  }
  return new Error(
    `--files ${identity.url} was emptied or replaced while in use: nothing can be kept any more, so this ` +
      'process stops; start it again once the files are back',
  );
}

/**
 * Returns true when the bucket still has this id. A bucket that refuses or does not answer is unavailable,
 * not lost.
 */
async function isSame(identity: BucketIdentity, folderId: string): Promise<boolean> {
  try {
    return (await identity.readId('folder.id')) === folderId;
  } catch {
    return true;
  }
}
