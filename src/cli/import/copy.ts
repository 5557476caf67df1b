import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, copyFile, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hashFile } from '../../lib/hash.ts';
import { spoolStream } from '../../lib/spool.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { FoundFile } from './scan.ts';

/** A copy of a file as it was when it was found, or in a few words why there is none. */
type Copied =
  | { readonly ok: true; readonly file: SpooledFile }
  | { readonly ok: false; readonly why: string };

export type FileCopier = (found: FoundFile) => Promise<Copied>;

/** Small files do not need large buffers, which are what copying thousands of them would cost. */
const BUFFER_BYTES = { least: 16 * 1024, most: 1024 * 1024 } as const;
const CHANGED_WHILE_READ = 'changed, or broke off, while it was read';
const READ_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0);

/**
 * Copies files into a folder, hashing on the way, never touching the original. Where the disk can
 * share the blocks of two files until one of them changes, nothing is written.
 */
export function createFileCopier(dir: string): FileCopier {
  let canClone = true;

  async function tryClone({
    path,
    sizeBytes: expected,
  }: FoundFile): Promise<SpooledFile | undefined> {
    const copy = join(dir, randomUUID());
    try {
      await copyFile(path, copy, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
      await chmod(copy, 0o600);
    } catch {
      // Other disks, other systems: what is wrong with the file itself shows when it is read.
      await rm(copy, { force: true });
      return undefined;
    }
    return { path: copy, ...(await hashFile(copy, bufferFor(expected))) };
  }

  return async (found) => {
    const clone = canClone ? await tryClone(found) : undefined;
    canClone = clone !== undefined;
    const copied: Copied = clone ? { ok: true, file: clone } : await copyBytes(found, dir);
    if (!copied.ok || (await isUnchanged(found, copied.file))) return copied;
    await rm(copied.file.path, { force: true });
    return { ok: false, why: CHANGED_WHILE_READ };
  };
}

async function copyBytes({ path, sizeBytes }: FoundFile, dir: string): Promise<Copied> {
  const handle = await open(path, READ_FLAGS);
  const source = handle.createReadStream({ highWaterMark: bufferFor(sizeBytes) });
  try {
    const spooled = await spoolStream(source, { dir, maxBytes: sizeBytes });
    if (spooled.ok) return { ok: true, file: spooled.value };
    if (spooled.status === 507) throw new Error(spooled.message);
    return { ok: false, why: CHANGED_WHILE_READ };
  } finally {
    source.destroy();
  }
}

function bufferFor(sizeBytes: number): number {
  return Math.min(Math.max(sizeBytes + 1, BUFFER_BYTES.least), BUFFER_BYTES.most);
}

async function isUnchanged(found: FoundFile, copy: SpooledFile): Promise<boolean> {
  const { size, mtimeMs } = await stat(found.path);
  return (
    size === found.sizeBytes &&
    size === copy.sizeBytes &&
    Math.round(mtimeMs) === found.modifiedAtMs
  );
}
