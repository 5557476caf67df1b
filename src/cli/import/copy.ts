import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, copyFile, lstat, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { hashFile } from '../../lib/hash.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { type FoundFile, reasonOf } from './scan.ts';

/** A copy of a file as the scan found it, or the reason why there is none. */
type Copied =
  | { readonly ok: true; readonly file: SpooledFile }
  | { readonly ok: false; readonly why: string };

/** Copies one file. Never throws when the original cannot be read. */
export type FileCopier = (found: FoundFile) => Promise<Copied>;

/** Returns a function that copies files into a folder. It never changes the original. */
export function createFileCopier(dir: string): FileCopier {
  return async (found) => {
    const path = join(dir, randomUUID());
    const error = await copyFrom(found.path, path);
    if (error) return { ok: false, why: reasonOf(error) };
    await chmod(path, 0o600);
    const file = { path, ...(await hashFile(path)) };
    if (await isUnchanged(found, file)) return { ok: true, file };
    await rm(path, { force: true });
    return { ok: false, why: 'changed while it was read, or was not read to its end' };
  };
}

async function isUnchanged(found: FoundFile, copy: SpooledFile): Promise<boolean> {
  const stats = await lstat(found.path).catch(() => undefined);
  return (
    stats?.isFile() === true &&
    stats.size === found.sizeBytes &&
    stats.size === copy.sizeBytes &&
    Math.round(stats.mtimeMs) === found.modifiedAtMs
  );
}

/**
 * Copies a file. On file systems with copy-on-write the two share their blocks. Returns an error of reading the
 * original, and leaves no copy then. Throws an error of writing the copy.
 */
async function copyFrom(from: string, to: string): Promise<NodeJS.ErrnoException | undefined> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    return undefined;
  } catch (cause) {
    await rm(to, { force: true });
    const error = cause as NodeJS.ErrnoException;
    const isAbsent =
      error.code === 'ENOENT' && (await undefinedIfAbsent(lstat(from))) === undefined;
    if (isAbsent || error.code === 'EIO' || error.code === 'EACCES') return error;
    throw error;
  }
}
