import { existsSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import type { RecordedBlob } from '../../ledger/sqlite/inspect.ts';
import { type CopyResult, copyTo, linkTo } from './copy.ts';
import type { BucketFiles } from './bucket-files.ts';
import type { Backup } from './backups.ts';
import type { ListedFile } from './manifest.ts';
import { blobPath } from './records.ts';

/** Copies content-addressed files into one backup. */
export type BlobCopier = ReturnType<typeof createBlobCopier>;

/** A file that the previous backup has is linked, not copied: backups never change. */
export function createBlobCopier(places: {
  readonly dataDir: string;
  readonly bucket?: BucketFiles | undefined;
  readonly partial: string;
  readonly previous: Backup | undefined;
  /** The folder for files while they are copied. */
  readonly dir: string;
}) {
  const { dataDir, bucket, partial, previous, dir } = places;
  const known = new Map(previous?.manifest.files.map((file) => [file.path, file]));
  const listed = new Map<string, ListedFile>();
  const copied = { files: 0, bytes: 0 };
  async function linkPrevious(path: string): Promise<ListedFile | undefined> {
    const file = known.get(path);
    if (!previous || !file) return undefined;
    const isThere = await linkTo(join(previous.path, path), join(partial, path), file.sizeBytes);
    return isThere ? file : undefined;
  }
  async function copyFresh(hash: string, path: string): Promise<CopyResult> {
    const place = join(partial, path);
    if (existsSync(place)) {
      const { size, mtimeMs } = await lstat(place);
      return { ok: true, hash, sizeBytes: size, modifiedAtMs: Math.round(mtimeMs) };
    }
    const copyResult = bucket
      ? await bucket.copyTo(path, place, { dir, hash })
      : await copyTo(join(dataDir, path), place, { dir, hash });
    if (copyResult.ok) copied.files++;
    if (copyResult.ok) copied.bytes += copyResult.sizeBytes;
    return copyResult;
  }
  return {
    copied,
    has: (hash: string) => listed.get(hash),
    /** Copies a file into the backup, unless it is there. Returns the reason when it cannot be copied. */
    async copy({ hash }: RecordedBlob): Promise<string | undefined> {
      if (listed.has(hash)) return undefined;
      const path = blobPath(hash).split(sep).join('/');
      const linked = await linkPrevious(path);
      const copyResult: CopyResult = linked ? { ok: true, ...linked } : await copyFresh(hash, path);
      if (!copyResult.ok) return copyResult.why;
      listed.set(hash, { ...manifestFields(copyResult), path });
      return undefined;
    },
  };
}

/** Returns the entry of a copied file in the manifest, without its path. */
export function manifestFields(
  copied: Extract<CopyResult, { ok: true }>,
): Omit<ListedFile, 'path'> {
  const { hash, sizeBytes, modifiedAtMs } = copied;
  return { hash, sizeBytes, modifiedAtMs };
}
