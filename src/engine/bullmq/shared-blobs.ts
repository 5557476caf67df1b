import type { Clock } from '../../lib/clock.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import type { OutputNames } from '../assets/outputs.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Redis } from '../../redis/redis.ts';
import type { QueueKeys } from './redis-keys.ts';
import { defineQueueScripts } from './queue-scripts.ts';

/** How long a counter for file names is kept after its last use. */
const COUNTER_TTL_MS = 24 * 60 * 60_000;
/** Longer than the time from a claimed name, or from stored bytes, to their record. */
const CLAIM_TTL_MS = 60_000;
/** A removal that takes longer than this was interrupted. */
const REMOVAL_MS = 60_000;

/** Reserves names of output files for several processes. */
export function createSharedOutputNames(redis: Redis, keys: QueueKeys): OutputNames {
  const scripts = defineQueueScripts(redis, keys);
  return {
    reserveCounter: (user, start, floor) =>
      scripts.reserveCounter(keys.nameCounter(user, start), floor, COUNTER_TTL_MS),
    claimName: async (user, filePath) =>
      (await redis.set(keys.nameClaim(user, filePath), '1', 'PX', CLAIM_TTL_MS, 'NX')) === 'OK',
  };
}

/** Blobs that several processes share: one may start to use bytes while another one removes them. */
export type SharedBlobs = Blobs & {
  /** Finishes the removals that a crashed process began. */
  finishRemovals(): Promise<void>;
};

type SharedBlobsOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly blobs: Blobs;
  readonly ledger: Ledger;
  readonly clock: Clock;
};

/**
 * Makes blobs safe for several processes. A removal moves the bytes aside, counts their records again, then deletes
 * the bytes or moves them back. It needs no lock, which could outlive its process: a process that records the same
 * bytes meanwhile gets them back.
 */
export function createSharedBlobs(options: SharedBlobsOptions): SharedBlobs {
  const { blobs, clock } = options;
  return {
    ...blobs,
    async moveIntoPlace(file) {
      await announce(file.hash, options);
      await blobs.moveIntoPlace(file);
    },
    async put(file) {
      await announce(file.hash, options);
      await blobs.put(file);
    },
    async remove(hash) {
      const name = await blobs.setAside(hash);
      const isKept = name !== undefined && (await finishRemoval({ name, hash }, options));
      // Announced bytes may get no record: with their marker they are removed later.
      if (!isKept) await blobs.markRecorded(hash);
    },
    async finishRemovals() {
      for await (const aside of blobs.listAside()) {
        if (clock.now() - aside.sinceMs > REMOVAL_MS) await finishRemoval(aside, options);
      }
    },
  };
}

/** Prevents other processes from removing these bytes for `CLAIM_TTL_MS`. */
async function announce(hash: string, { redis, keys }: SharedBlobsOptions): Promise<void> {
  await redis.set(keys.pendingBlob(hash), '1', 'PX', CLAIM_TTL_MS);
}

/** Deletes bytes that were set aside, or puts them back. True: they are back. */
async function finishRemoval(
  { name, hash }: { readonly name: string; readonly hash: string },
  { redis, keys, blobs, ledger }: SharedBlobsOptions,
): Promise<boolean> {
  // Keep this order. `moveIntoPlace` and `put` announce the bytes first, and their record exists before the
  // announcement expires.
  const isWanted =
    (await redis.exists(keys.pendingBlob(hash))) === 1 ||
    (await ledger.assets.countByHash(hash)) > 0;
  await (isWanted ? blobs.putBack(name) : blobs.removeAside(name));
  return isWanted;
}
