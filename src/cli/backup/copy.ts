import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, copyFile, link, lstat, mkdir, rm, utimes, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { hashFile } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import { isWithin, realPathOf } from '../../config/shared-folders.ts';
import { LedgerInUse, lockFile } from '../../ledger/sqlite/sqlite-ledger.ts';

/** Bytes that were read: how many, and their hash. */
type HashedBytes = { readonly hash: string; readonly sizeBytes: number };

export type CopyResult =
  | (HashedBytes & { readonly ok: true; readonly modifiedAtMs: number })
  /** `absent`: there is no such file; else why its bytes were not taken. */
  | { readonly ok: false; readonly why: 'absent' | 'not the bytes of its name' | 'unreadable' };

/**
 * Copies a file to its place: whole, on disk and with the expected bytes, or not at all. `dir` is for
 * files on their way.
 */
export async function copyTo(
  from: string,
  to: string,
  options: { readonly dir: string; readonly hash?: string },
): Promise<CopyResult> {
  const stats = await lstat(from).catch(undefinedIfAbsent);
  if (stats === undefined) return { ok: false, why: 'absent' };
  if (!stats.isFile()) return { ok: false, why: 'unreadable' };
  const path = join(options.dir, randomUUID());
  try {
    const error = await copyFrom(from, path);
    if (error) return { ok: false, why: error.code === 'ENOENT' ? 'absent' : 'unreadable' };
    await chmod(path, 0o600);
    // The copy is read, not the original, so that the stored bytes are the verified ones.
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

/** A second name for a file that no process ever changes in place; false where that cannot be. */
export async function linkTo(from: string, to: string, sizeBytes: number): Promise<boolean> {
  try {
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    if ((await lstat(from)).size !== sizeBytes) return false;
    await link(from, to);
    return true;
  } catch {
    // No hard links on this file system, too many of one file, or the older file is gone.
    return false;
  }
}

/**
 * Copies a file; a file system that can share blocks until one of the two changes does so. An error
 * reading the original is returned, and no copy is left; an error writing the copy is thrown.
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
      error.code === 'ENOENT' && (await lstat(from).catch(undefinedIfAbsent)) === undefined;
    if (isAbsent || error.code === 'EIO' || error.code === 'EACCES') return error;
    throw error;
  }
}

/** For `catch`: a file that is not there is no error. */
export function undefinedIfAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
  throw error;
}

/** Plain files only, by their path below the folder. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    },
  );
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Locks for this process; `undefined`: another one has the lock. */
export function tryLock(path: string): ReturnType<typeof lockFile> | undefined {
  try {
    return lockFile(path);
  } catch (error) {
    if (error instanceof LedgerInUse) return undefined;
    throw error;
  }
}

export function inUseText(dataDir: string): string {
  return `the data folder ${dataDir} is in use by a running Holdover: stop it first`;
}

/** A backup inside of what it saves would go with it. */
export function refuseNested(backups: string, dataDir: string): void {
  const [one, other] = [realPathOf(resolve(backups)), realPathOf(resolve(dataDir))];
  if (!isWithin(one, other) && !isWithin(other, one)) return;
  throw new Error(`backups (${backups}) and data folder (${dataDir}) must not be in one another`);
}
