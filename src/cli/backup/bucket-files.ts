import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { hashFile } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import { WrongBytes } from '../../upstreams/bucket/errors.ts';
import type { OpenedBucket } from '../../upstreams/bucket/open-bucket.ts';
import type { CopyResult } from './copy.ts';

/** The files of a bucket, by their paths in a data folder. */
export type BucketFiles = {
  /** Lists the paths of the user data and of the ids. Clients can change user data under the same name. */
  listSmall(): Promise<readonly string[]>;
  /** Copies one file. `to` is written only when the copy is complete, synced to the disk, and has the expected hash. */
  copyTo(
    path: string,
    to: string,
    options: { readonly dir: string; readonly hash?: string },
  ): Promise<CopyResult>;
};

const IDS = ['folder.id', 'ledger.id'];

/** Returns the files of an opened bucket. */
export function filesOfBucket({ blobs, objects }: OpenedBucket): BucketFiles {
  /** Returns false when the object does not exist. */
  async function download(path: string, hash: string | undefined, to: string): Promise<boolean> {
    if (hash !== undefined) return await blobs.copyTo(hash, to);
    const stream = await objects.open(path);
    if (stream) await pipeline(stream, createWriteStream(to, { flags: 'wx', mode: 0o600 }));
    return stream !== undefined;
  }
  return {
    async listSmall() {
      const paths: string[] = [...IDS];
      for await (const { key } of objects.list('userdata/'))
        if (!key.endsWith('/')) paths.push(key);
      return paths;
    },
    async copyTo(path, to, { dir, hash }) {
      const temporary = join(dir, randomUUID());
      try {
        if (!(await download(path, hash, temporary))) return { ok: false, why: 'absent' };
        const read = await hashFile(temporary);
        await moveIntoPlace({ path: temporary }, to);
        return { ok: true, ...read, modifiedAtMs: Math.round((await stat(to)).mtimeMs) };
      } catch (error) {
        if (error instanceof WrongBytes) return { ok: false, why: 'not the bytes of its name' };
        throw error;
      } finally {
        await rm(temporary, { force: true });
      }
    },
  };
}
