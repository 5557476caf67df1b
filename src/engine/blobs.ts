import { constants } from 'node:fs';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import path from 'node:path';
import type { SpooledFile } from '../wire/jobs.ts';

/** Content-addressed files: `<dir>/<2 hex>/<64 hex>`, complete or absent, never half-written. */
export type Blobs = {
  /** Takes a spooled file over; it is durable once this resolves. */
  adopt(file: SpooledFile): Promise<void>;
  open(hash: string): Promise<FileHandle | undefined>;
  readonly pathOf: (hash: string) => string;
  remove(hash: string): Promise<void>;
  /** Hashes of all files present. */
  hashes(): AsyncIterable<string>;
};

const HASH = /^blake3:([0-9a-f]{64})$/;

/** Opens the store; folders appear when they are first needed. */
export function createBlobs(dir: string): Blobs {
  const pathOf = (hash: string): string => {
    const hex = HASH.exec(hash)?.[1];
    if (!hex) throw new Error(`not a blake3 hash: ${JSON.stringify(hash)}`);
    return path.join(dir, hex.slice(0, 2), hex);
  };
  return {
    pathOf,
    async adopt(file) {
      const target = pathOf(file.hash);
      await mkdir(path.dirname(target), { recursive: true });
      await sync(file.path);
      await rename(file.path, target);
      await sync(path.dirname(target));
      await sync(dir);
    },
    async open(hash) {
      try {
        return await open(pathOf(hash), constants.O_RDONLY | constants.O_NOFOLLOW);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async remove(hash) {
      await rm(pathOf(hash), { force: true });
    },
    async *hashes() {
      for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }).catch(
        () => [],
      )) {
        if (entry.isFile() && HASH.test(`blake3:${entry.name}`)) yield `blake3:${entry.name}`;
      }
    },
  };
}

async function sync(target: string): Promise<void> {
  const handle = await open(target, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
