import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { settleBlob } from '../engine/assets.ts';
import type { Blobs } from '../engine/blobs.ts';
import type { Names } from '../engine/outputs.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Redis } from '../redis.ts';
import type { Keys } from './keys.ts';
import { PROMISE, runScript } from './scripts.ts';

const COUNTER_LIFE_MS = 24 * 60 * 60_000;
/** Longer than it takes from a name, or from bytes, to their record. */
const CLAIM_LIFE_MS = 60_000;
/** Longer than a removal takes. */
const LEAVING_MS = 60_000;
/** Bytes that waited so long for a record never get one. */
const UNRECORDED_AGE_MS = 60 * 60_000;

/** Names of files where several processes make them at a time. */
export function createSharedNames(redis: Redis, keys: Keys): Names {
  return {
    async promise(user, start, floor) {
      const args = [floor, COUNTER_LIFE_MS];
      return Number(await runScript(redis, PROMISE, { keys: [keys.counter(user, start)], args }));
    },
    claim: async (user, filePath) =>
      (await redis.set(keys.name(user, filePath), '1', 'PX', CLAIM_LIFE_MS, 'NX')) === 'OK',
  };
}

/** Bytes that other processes may be taking into use while they are removed here. */
export type SharedBlobs = Blobs & {
  /** Ends removals that a dead process began. */
  settle(): Promise<void>;
  /** Removes bytes whose record a dead process owed, or had removed. */
  removeUnrecorded(): Promise<void>;
};

type Deps = {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly blobs: Blobs;
  readonly dataDir: string;
  readonly ledger: Ledger;
  readonly clock: () => number;
};

/**
 * Set aside first, then counted again, then gone: whoever records the same bytes meanwhile finds
 * them back in their place, and nobody has to hold a lock that might outlive them.
 */
export function createSharedBlobs(deps: Deps): SharedBlobs {
  const { redis, keys, blobs, dataDir, ledger, clock } = deps;
  const asideDir = path.join(dataDir, 'blobs-leaving');

  async function decide(name: string): Promise<void> {
    const hash = `blake3:${name.split('.')[0]}`;
    const aside = path.join(asideDir, name);
    // In this order: who adopts says so first and is silent again once it is recorded.
    const isWanted =
      (await redis.exists(keys.adopted(hash))) === 1 || (await ledger.assets.countByHash(hash)) > 0;
    if (isWanted) await moveIfThere(aside, blobs.pathOf(hash));
    else await rm(aside, { force: true });
  }

  async function remove(hash: string): Promise<void> {
    await mkdir(asideDir, { recursive: true, mode: 0o700 });
    const name = `${hash.replace('blake3:', '')}.${randomUUID()}`;
    if (await moveIfThere(blobs.pathOf(hash), path.join(asideDir, name))) await decide(name);
    await blobs.recorded(hash);
  }

  return {
    ...blobs,
    async adopt(file) {
      await redis.set(keys.adopted(file.hash), '1', 'PX', CLAIM_LIFE_MS);
      await blobs.adopt(file);
    },
    remove,
    async settle() {
      for (const name of await readdir(asideDir).catch(() => [])) {
        if ((await ageMs(path.join(asideDir, name), clock())) > LEAVING_MS) await decide(name);
      }
    },
    async removeUnrecorded() {
      for await (const { hash, sinceMs } of blobs.unrecorded()) {
        if (clock() - sinceMs <= UNRECORDED_AGE_MS) continue;
        await settleBlob(hash, { ledger, blobs: { ...blobs, remove } });
      }
    },
  };
}

async function moveIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Since it came to its place; a file that is gone has no age. */
async function ageMs(file: string, nowMs: number): Promise<number> {
  const found = await stat(file).catch(() => undefined);
  return found ? nowMs - Math.max(found.ctimeMs, found.mtimeMs) : 0;
}
