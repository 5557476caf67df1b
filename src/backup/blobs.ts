import { existsSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { RecordedBlob } from '../ledger/sqlite-read.ts';
import { type Copied, copyTo, linkTo } from './copy.ts';
import type { Generation } from './folder.ts';
import type { Listed } from './manifest.ts';
import { blobPath } from './records.ts';

/** Brings content-addressed files into one backup. */
export type BlobCopier = {
  /** Puts the bytes into the backup, once; why not, when they are not to be had. */
  copy(blob: RecordedBlob): Promise<string | undefined>;
  has(hash: string): Listed | undefined;
  readonly copied: { files: number; bytes: number };
};

/** `last`, a complete backup beside it, has what is the same: it is linked, as no backup ever changes. */
export function createBlobCopier(places: {
  readonly dataDir: string;
  readonly partial: string;
  readonly last: Generation | undefined;
  /** For files on their way. */
  readonly dir: string;
}): BlobCopier {
  const { dataDir, partial, last, dir } = places;
  const known = new Map(last?.manifest.files.map((file) => [file.path, file]));
  const listed = new Map<string, Listed>();
  const copied = { files: 0, bytes: 0 };
  async function fromLast(path: string): Promise<Listed | undefined> {
    const file = known.get(path);
    if (!last || !file) return undefined;
    const isThere = await linkTo(join(last.path, path), join(partial, path), file.sizeBytes);
    return isThere ? file : undefined;
  }
  async function fresh(hash: string, path: string): Promise<Copied> {
    const place = join(partial, path);
    if (existsSync(place)) {
      const { size, mtimeMs } = await lstat(place);
      return { ok: true, hash, sizeBytes: size, modifiedAtMs: Math.round(mtimeMs) };
    }
    const taken = await copyTo(join(dataDir, path), place, { dir, hash });
    if (taken.ok) copied.files++;
    if (taken.ok) copied.bytes += taken.sizeBytes;
    return taken;
  }
  return {
    copied,
    has: (hash) => listed.get(hash),
    async copy({ hash }) {
      if (listed.has(hash)) return undefined;
      const path = blobPath(hash).split(sep).join('/');
      const older = await fromLast(path);
      const taken: Copied = older ? { ok: true, ...older } : await fresh(hash, path);
      if (!taken.ok) return taken.why;
      listed.set(hash, { ...factsOf(taken), path });
      return undefined;
    },
  };
}

/** The entry of copied bytes in a manifest. */
export function factsOf(copied: Extract<Copied, { ok: true }>): Omit<Listed, 'path'> {
  const { hash, sizeBytes, modifiedAtMs } = copied;
  return { hash, sizeBytes, modifiedAtMs };
}
