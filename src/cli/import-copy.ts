import { randomUUID } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { chmod, copyFile, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createHasher } from '../hash.ts';
import { spoolStream } from '../spool.ts';
import type { SpooledFile } from '../wire/jobs.ts';
import type { Found } from './import-scan.ts';

/** A copy of a file as it was when it was found, or in a few words why there is none. */
type Copied =
  | { readonly ok: true; readonly file: SpooledFile }
  | { readonly ok: false; readonly why: string };

export type Copier = (found: Found) => Promise<Copied>;

/** Small files do not need large buffers, which are what copying thousands of them would cost. */
const BUFFER_BYTES = { least: 16 * 1024, most: 1024 * 1024 } as const;
const UNSTEADY = 'changed, or broke off, while it was read';
const READ_PLAIN = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);

/**
 * Copies files into a folder, hashing on the way, never touching the original. Where the disk can
 * share the blocks of two files until one of them changes, nothing is written.
 */
export function createCopier(dir: string): Copier {
  let canShare = true;

  async function shared({ path, sizeBytes: expected }: Found): Promise<SpooledFile | undefined> {
    const copy = join(dir, randomUUID());
    try {
      await copyFile(path, copy, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
      await chmod(copy, 0o600);
    } catch {
      // Other disks, other systems: what is wrong with the file itself shows when it is read.
      await rm(copy, { force: true });
      return undefined;
    }
    return await hashed(copy, expected);
  }

  return async (found) => {
    const clone = canShare ? await shared(found) : undefined;
    canShare = clone !== undefined;
    const copied: Copied = clone ? { ok: true, file: clone } : await read(found, dir);
    if (!copied.ok || (await isSame(found, copied.file))) return copied;
    await rm(copied.file.path, { force: true });
    return { ok: false, why: UNSTEADY };
  };
}

async function read({ path, sizeBytes }: Found, dir: string): Promise<Copied> {
  const handle = await open(path, READ_PLAIN);
  const source = handle.createReadStream({ highWaterMark: bufferFor(sizeBytes) });
  try {
    const spooled = await spoolStream(source, { dir, maxBytes: sizeBytes });
    if (spooled.ok) return { ok: true, file: spooled.value };
    if (spooled.status === 507) throw new Error(spooled.message);
    return { ok: false, why: UNSTEADY };
  } finally {
    source.destroy();
  }
}

async function hashed(path: string, expectedBytes: number): Promise<SpooledFile> {
  const hasher = createHasher();
  const highWaterMark = bufferFor(expectedBytes);
  let sizeBytes = 0;
  try {
    for await (const chunk of createReadStream(path, { highWaterMark })) {
      hasher.update(chunk as Buffer);
      sizeBytes += (chunk as Buffer).length;
    }
    return { path, sizeBytes, hash: hasher.digest() };
  } finally {
    hasher.discard();
  }
}

function bufferFor(sizeBytes: number): number {
  return Math.min(Math.max(sizeBytes + 1, BUFFER_BYTES.least), BUFFER_BYTES.most);
}

async function isSame(found: Found, copy: SpooledFile): Promise<boolean> {
  const { size, mtimeMs } = await stat(found.path);
  return (
    size === found.sizeBytes &&
    size === copy.sizeBytes &&
    Math.round(mtimeMs) === found.modifiedAtMs
  );
}
