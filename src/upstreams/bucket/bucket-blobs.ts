import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable, Transform, pipeline } from 'node:stream';
import { pipeline as pipelineEnd } from 'node:stream/promises';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import { createHasher, hashOf } from '../../lib/hash.ts';
import { readAtMost } from '../../lib/read-at-most.ts';
import { BLOB_HASH, hashOfAside, hexOf } from '../blob-paths.ts';
import type { Blobs } from '../blobs.ts';
import type { BucketClient } from './client.ts';
import { WrongBytes } from './errors.ts';
import type { Objects, Patience } from './objects.ts';
import type { StagedUploads } from './staged-uploads.ts';

/**
 * The keys below the prefix. Their names are those of a data folder, so that each can be copied to
 * the other.
 */
export const FOLDERS = {
  blobs: 'blobs/',
  markers: 'blobs-unrecorded/',
  aside: 'blobs-leaving/',
  staging: 'staging/',
} as const;

/** How long a job waits for an unavailable bucket before it fails. */
const JOB_PATIENCE = { retryForMs: 60_000 };
/** The limits for inputs of recent jobs in memory: of all together, and of each. */
const CACHE_BYTES = { total: 64 * 2 ** 20, each: 32 * 2 ** 20 };
const ABANDONED_AFTER_MS = 24 * 60 * 60_000;
/** The contract says "at most an hour": an old link found in a history or a log opens nothing. */
const LINK_LIFETIME_S = 60 * 60;
const MAX_READ_BYTES = 2 ** 32;
const NOTHING = new Uint8Array();

export type BucketBlobsOptions = {
  readonly client: Pick<BucketClient, 'link'>;
  readonly objects: Objects;
  readonly staged: Pick<StagedUploads, 'finish' | 'cancel'>;
  readonly clock: Pick<Clock, 'now'>;
};

/**
 * Creates blobs in a bucket. Each one is an object whose key is its hash. S3 shows an object only
 * when all its bytes have arrived. Every part is sent with its SHA-256, which the server compares.
 */
export function createBucketBlobs({ client, objects, staged, clock }: BucketBlobsOptions): Blobs {
  const recentInputs = new LRUCache<string, Uint8Array>({
    maxSize: CACHE_BYTES.total,
    maxEntrySize: CACHE_BYTES.each,
    sizeCalculation: (bytes) => bytes.length + 1,
  });
  const markRecorded = (hash: string): Promise<void> => objects.remove(markerKey(hash));
  const markUnrecorded = async (hash: string, patience?: Patience): Promise<void> =>
    void (await objects.put(markerKey(hash), NOTHING, patience));

  /**
   * Stores bytes once. Existing bytes without a record may belong to another ledger, so this one
   * must never remove them.
   */
  async function storeOnce(
    { hash, sizeBytes }: { readonly hash: string; readonly sizeBytes: number },
    store: () => Promise<void>,
    patience?: Patience,
  ) {
    const size = await objects.head(blobKey(hash), patience);
    if (size === sizeBytes) return;
    if (size === undefined) await markUnrecorded(hash, patience);
    await store();
  }

  async function readAll(hash: string): Promise<Uint8Array | undefined> {
    const stream = await objects.open(blobKey(hash), undefined, JOB_PATIENCE);
    if (!stream) return undefined;
    const bytes = await readAtMost(MAX_READ_BYTES, stream);
    if (bytes === undefined) throw new RangeError('Array buffer allocation failed');
    if (hashOf(bytes) !== hash) throw wrongBytes(hash);
    return bytes;
  }

  return {
    markRecorded,
    markUnrecorded: (hash) => markUnrecorded(hash),
    async moveIntoPlace(file) {
      const key = blobKey(file.hash);
      await storeOnce(file, async () => {
        if (!(await staged.finish(file, key))) await objects.putFile(key, file);
      });
      staged.cancel(file);
      await rm(file.path, { force: true });
    },
    put: (hash, bytes) =>
      storeOnce(
        { hash, sizeBytes: bytes.length },
        () => objects.putBytes(blobKey(hash), bytes, JOB_PATIENCE),
        JOB_PATIENCE,
      ),
    sync: async () => {},
    isInPlace: async (hash) => (await objects.head(blobKey(hash), JOB_PATIENCE)) !== undefined,
    sizeOf: (hash) => objects.head(blobKey(hash)),
    async open(hash, range) {
      const stream = await objects.open(blobKey(hash), range);
      return stream && range === undefined ? verified(stream, hash) : stream;
    },
    async read(hash) {
      const recent = recentInputs.get(hash);
      if (recent) return recent;
      const bytes = await readAll(hash);
      if (bytes) recentInputs.set(hash, bytes);
      return bytes;
    },
    async copyTo(hash, path) {
      const stream = await objects.open(blobKey(hash));
      if (!stream) return false;
      await pipelineEnd(
        verified(stream, hash),
        createWriteStream(path, { flags: 'wx', mode: 0o600 }),
      );
      return true;
    },
    async remove(hash) {
      recentInputs.delete(hash);
      await objects.remove(blobKey(hash));
      await markRecorded(hash);
    },
    async *listUnrecorded() {
      for await (const { key, modifiedAtMs } of objects.list(FOLDERS.markers)) {
        const hash = `blake3:${key.slice(FOLDERS.markers.length)}`;
        if (BLOB_HASH.test(hash)) yield { hash, sinceMs: modifiedAtMs };
      }
    },
    async *list() {
      for await (const { key, sizeBytes, modifiedAtMs } of objects.list(FOLDERS.blobs)) {
        const hash = `blake3:${key.slice(FOLDERS.blobs.length + 3)}`;
        if (BLOB_HASH.test(hash) && blobKey(hash) === key)
          yield { hash, sizeBytes, modifiedAtMs, placedAtMs: modifiedAtMs };
      }
    },
    async setAside(hash) {
      const name = `${hexOf(hash)}.${randomUUID()}`;
      // S3 cannot rename. The object is copied before it is deleted, so that its bytes always
      // exist.
      if (!(await objects.copy(blobKey(hash), FOLDERS.aside + name))) return undefined;
      recentInputs.delete(hash);
      await objects.remove(blobKey(hash));
      return name;
    },
    async putBack(name) {
      const hash = hashOfAside(name);
      if ((await objects.head(blobKey(hash))) === undefined)
        await objects.copy(FOLDERS.aside + name, blobKey(hash));
      await objects.remove(FOLDERS.aside + name);
    },
    removeAside: (name) => objects.remove(FOLDERS.aside + name),
    async *listAside() {
      for await (const { key, modifiedAtMs } of objects.list(FOLDERS.aside)) {
        const name = key.slice(FOLDERS.aside.length);
        yield { name, hash: hashOfAside(name), sinceMs: modifiedAtMs };
      }
    },
    async removeAbandoned() {
      const beforeMs = clock.now() - ABANDONED_AFTER_MS;
      for (const upload of await objects.unfinished(''))
        if (upload.sinceMs < beforeMs) await objects.abortParts(upload);
      for await (const { key, modifiedAtMs } of objects.list(FOLDERS.staging))
        if (modifiedAtMs < beforeMs) await objects.remove(key);
    },
    linkTo: (hash, { contentType, disposition }) =>
      client.link(
        blobKey(hash),
        {
          'response-content-type': contentType,
          'response-content-disposition': disposition,
          'response-cache-control': 'private, no-cache',
        },
        LINK_LIFETIME_S,
      ),
  };
}

function blobKey(hash: string): string {
  const hex = hexOf(hash);
  return `${FOLDERS.blobs}${hex.slice(0, 2)}/${hex}`;
}

function markerKey(hash: string): string {
  return FOLDERS.markers + hexOf(hash);
}

/** Passes on the bytes. The stream fails before the last ones when they do not match the hash. */
function verified(stream: Readable, hash: string): Readable {
  const hasher = createHasher();
  let held: Buffer | undefined;
  const check = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hasher.update(chunk);
      const former = held;
      held = chunk;
      done(null, former);
    },
    flush(done) {
      if (hasher.digest() === hash) done(null, held);
      else done(wrongBytes(hash));
    },
    destroy(error, done) {
      hasher.discard();
      done(error);
    },
  });
  // When its reader stops, the stream ends the read of the bucket, too.
  return pipeline(stream, check, () => {});
}

function wrongBytes(hash: string): WrongBytes {
  return new WrongBytes(`the object of ${hash} holds other bytes`);
}
