import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { TimeSource } from '../../lib/clock.ts';
import { createHasher } from '../../lib/hash.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { readAtMost } from '../../lib/read-at-most.ts';
import { BLOB_HASH, blobPath, hashOfAside, hexOf } from '../blob-paths.ts';
import type { AsideBlobs, BlobMarkers, BlobReads, Blobs } from '../blobs.ts';
import type { Objects } from './objects.ts';

/**
 * The keys below the prefix. Their names are those of a data folder, so that each can be copied to
 * the other.
 */
const FOLDERS = {
  blobs: 'blobs/',
  markers: 'blobs-unrecorded/',
  aside: 'blobs-leaving/',
} as const;

const ABANDONED_AFTER_MS = 24 * 60 * 60_000;
const MAX_READ_BYTES = 2 ** 32;
const NOTHING = new Uint8Array();

/**
 * Creates blobs in a bucket. Each one is an object whose key is its hash. S3 shows an object only
 * when all its bytes have arrived. Every part is sent with its SHA-256, which the server compares.
 * `jobObjects` are the same objects, for jobs: their calls are repeated for longer.
 */
export function createBucketBlobs(objects: Objects, jobObjects: Objects, clock: TimeSource): Blobs {
  return {
    moveIntoPlace: (file) => storeOnce(objects, file),
    put: (file) => storeOnce(jobObjects, file),
    sync: async () => {},
    async remove(hash) {
      await objects.remove(blobPath(hash));
      await objects.remove(markerKey(hash));
    },
    removeAbandoned: () => objects.abortUploads(clock.now() - ABANDONED_AFTER_MS),
    ...createMarkers(objects),
    ...createReads(objects, jobObjects),
    ...createAside(objects),
  };
}

/**
 * Stores bytes once. Existing bytes without a record may belong to another ledger, so this one
 * must never remove them.
 */
async function storeOnce(into: Objects, file: SpooledFile): Promise<void> {
  const key = blobPath(file.hash);
  const found = await into.stat(key);
  if (found === undefined) await into.put(markerKey(file.hash), NOTHING);
  if (found?.sizeBytes !== file.sizeBytes) await into.putFile(key, file);
  await rm(file.path, { force: true });
}

function createMarkers(objects: Objects): BlobMarkers {
  return {
    markRecorded: (hash) => objects.remove(markerKey(hash)),
    markUnrecorded: async (hash) => void (await objects.put(markerKey(hash), NOTHING)),
    async *listUnrecorded() {
      for await (const { key, modifiedAtMs } of objects.list(FOLDERS.markers)) {
        const hash = `blake3:${key.slice(FOLDERS.markers.length)}`;
        if (BLOB_HASH.test(hash)) yield { hash, sinceMs: modifiedAtMs };
      }
    },
  };
}

function createReads(objects: Objects, jobObjects: Objects): BlobReads {
  return {
    sizeOf: async (hash) => (await objects.stat(blobPath(hash)))?.sizeBytes,
    open: (hash, range) =>
      range ? objects.open(blobPath(hash), range) : openVerified(objects, hash),
    async read(hash) {
      const stream = await openVerified(jobObjects, hash);
      const bytes = stream && (await readAtMost(MAX_READ_BYTES, stream));
      if (stream && !bytes) throw new RangeError('Array buffer allocation failed');
      return bytes;
    },
    async copyTo(hash, path) {
      const stream = await openVerified(objects, hash);
      if (!stream) return false;
      await pipeline(stream, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
      return true;
    },
    async *list() {
      for await (const { key, sizeBytes, modifiedAtMs } of objects.list(FOLDERS.blobs)) {
        const hash = `blake3:${key.slice(FOLDERS.blobs.length + 3)}`;
        if (BLOB_HASH.test(hash) && blobPath(hash) === key)
          yield { hash, sizeBytes, modifiedAtMs, placedAtMs: modifiedAtMs };
      }
    },
    linkTo: (hash, headers) => objects.link(blobPath(hash), headers),
  };
}

function createAside(objects: Objects): AsideBlobs {
  return {
    async setAside(hash) {
      const name = `${hexOf(hash)}.${randomUUID()}`;
      // S3 cannot rename. The object is copied before it is deleted, so that its bytes always
      // exist.
      if (!(await objects.copy(blobPath(hash), FOLDERS.aside + name))) return undefined;
      await objects.remove(blobPath(hash));
      return name;
    },
    async putBack(name) {
      const hash = hashOfAside(name);
      if ((await objects.stat(blobPath(hash))) === undefined)
        await objects.copy(FOLDERS.aside + name, blobPath(hash));
      await objects.remove(FOLDERS.aside + name);
    },
    removeAside: (name) => objects.remove(FOLDERS.aside + name),
    async *listAside() {
      for await (const { key, modifiedAtMs } of objects.list(FOLDERS.aside)) {
        const name = key.slice(FOLDERS.aside.length);
        yield { name, hash: hashOfAside(name), sinceMs: modifiedAtMs };
      }
    },
  };
}

function markerKey(hash: string): string {
  return FOLDERS.markers + hexOf(hash);
}

/** Opens all bytes. The stream fails before the last ones when they do not match the hash. */
async function openVerified(objects: Objects, hash: string): Promise<Readable | undefined> {
  const stream = await objects.open(blobPath(hash));
  if (!stream) return undefined;
  const verified = Readable.from(verifiedBytes(stream, hash), { objectMode: false });
  // A generator that never started does not end the read of the bucket.
  return verified.once('close', () => stream.destroy());
}

async function* verifiedBytes(stream: AsyncIterable<Buffer>, hash: string): AsyncIterable<Buffer> {
  const hasher = createHasher();
  let held: Buffer | undefined;
  try {
    for await (const chunk of stream) {
      hasher.update(chunk);
      if (held) yield held;
      held = chunk;
    }
    if (hasher.digest() !== hash) throw new Error(`the object of ${hash} holds other bytes`);
    if (held) yield held;
  } finally {
    hasher.discard();
  }
}
