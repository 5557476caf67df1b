import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isWithin, realPathOf } from '../../config/shared-folders.ts';
import { LedgerInUse, lockFile } from '../../ledger/sqlite/sqlite-ledger.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { hashFile } from '../../lib/hash.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';

/** A copy, or the reason why there is none. */
export type Copied = SpooledFile | 'absent' | 'unreadable' | 'not the bytes of its name';

/** Errors of the file itself, not of the disk that takes the copy. */
const UNREADABLE: readonly unknown[] = ['EIO', 'EACCES', 'EISDIR', 'ELOOP'];

/** Copies bytes into a new file in `dir`, and hashes that file. Throws when it cannot be written. */
export async function copyInto(
  dir: string,
  openSource: () => Promise<Readable | undefined>,
  expectedHash?: string,
): Promise<Copied> {
  const path = join(dir, randomUUID());
  try {
    const source = await openSource();
    if (source === undefined) return 'absent';
    await pipeline(source, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
  } catch (error) {
    await rm(path, { force: true });
    const { code, syscall = '' } = error as NodeJS.ErrnoException;
    if (UNREADABLE.includes(code) && ['open', 'read'].includes(syscall)) return 'unreadable';
    throw error;
  }
  const copy = { path, ...(await hashFile(path)) };
  if (expectedHash === undefined || copy.hash === expectedHash) return copy;
  await rm(path, { force: true });
  return 'not the bytes of its name';
}

/** Returns the plain files below a folder, as paths relative to it with `/`. Returns none when it does not exist. */
export async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await undefinedIfAbsent(
    readdir(folder, { recursive: true, withFileTypes: true }),
  );
  return (entries ?? [])
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .map((path) => path.split(sep).join('/'));
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
export function refuseNested(backup: string, dataDir: string): void {
  const [one, other] = [realPathOf(resolve(backup)), realPathOf(resolve(dataDir))];
  if (!isWithin(one, other) && !isWithin(other, one)) return;
  throw new Error(
    `backup (${backup}) and data folder (${dataDir}) must be separate: one is inside the other`,
  );
}
