import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, copyFile, link, lstat, mkdir, rm, utimes, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { hashFile } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import { isWithin, realPathOf } from '../../config/shared-folders.ts';
import { LedgerInUse, lockFile } from '../../ledger/sqlite/sqlite-ledger.ts';

/** The size and the hash of bytes that were read. */
type HashedBytes = { readonly hash: string; readonly sizeBytes: number };

/** The facts about a copied file, or the reason why it was not copied. */
export type CopyResult =
  | (HashedBytes & { readonly ok: true; readonly modifiedAtMs: number })
  /** `absent` when the file does not exist; any other value is the reason why it was not copied. */
  | { readonly ok: false; readonly why: 'absent' | 'not the bytes of its name' | 'unreadable' };

/**
 * Copies a file. `to` is written only when the copy is complete, synced to the disk, and has the expected hash. `dir`
 * is the folder for the copy until then. Throws when the copy cannot be written.
 */
export async function copyTo(
  from: string,
  to: string,
  options: { readonly dir: string; readonly hash?: string },
): Promise<CopyResult> {
  const stats = await undefinedIfAbsent(lstat(from));
  if (stats === undefined) return { ok: false, why: 'absent' };
  if (!stats.isFile()) return { ok: false, why: 'unreadable' };
  const path = join(options.dir, randomUUID());
  try {
    const error = await copyFrom(from, path);
    if (error) return { ok: false, why: error.code === 'ENOENT' ? 'absent' : 'unreadable' };
    await chmod(path, 0o600);
    // Hash the copy and not the original, so that the stored bytes are verified.
    const read = await hashFile(path);
    if (options.hash !== undefined && read.hash !== options.hash) {
      return { ok: false, why: 'not the bytes of its name' };
    }
    await utimes(path, stats.atime, stats.mtime);
    await moveIntoPlace({ path }, to);
    return { ok: true, ...read, modifiedAtMs: Math.round(stats.mtimeMs) };
  } finally {
    await rm(path, { force: true });
  }
}

/** Makes a hard link to a file that no process changes in place. Returns false when that is not possible. */
export async function linkTo(from: string, to: string, sizeBytes: number): Promise<boolean> {
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    if ((await lstat(from)).size !== sizeBytes) return false;
    await link(from, to);
    return true;
  } catch {
    // The file system has no hard links, the file has too many, or the older file is gone.
    return false;
  }
}

/**
 * Copies a file. On file systems with copy-on-write the two share their blocks. Returns an error of reading the
 * original, and leaves no copy then. Throws an error of writing the copy.
 */
export async function copyFrom(
  from: string,
  to: string,
): Promise<NodeJS.ErrnoException | undefined> {
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

/** Returns the plain files below a folder, as paths relative to it. Returns none when the folder does not exist. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await undefinedIfAbsent(
    readdir(folder, { recursive: true, withFileTypes: true }),
  );
  return (entries ?? [])
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Takes the lock. Returns `undefined` when another process has it. */
export function tryLock(path: string): ReturnType<typeof lockFile> | undefined {
  try {
    return lockFile(path);
  } catch (error) {
    if (error instanceof LedgerInUse) return undefined;
    throw error;
  }
}

/** Returns the text of the error about a data folder that a server uses. */
export function inUseText(dataDir: string): string {
  return `the data folder ${dataDir} is in use by a running Holdover: stop it first`;
}

/** Throws when one folder is inside the other: a backup inside the data folder would be lost with it. */
export function refuseNested(backups: string, dataDir: string): void {
  const [one, other] = [realPathOf(resolve(backups)), realPathOf(resolve(dataDir))];
  if (!isWithin(one, other) && !isWithin(other, one)) return;
  throw new Error(
    `backups (${backups}) and data folder (${dataDir}) must be separate: one is inside the other`,
  );
}
