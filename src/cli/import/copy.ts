import { randomUUID } from 'node:crypto';
import { chmod, lstat, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hashFile } from '../../lib/hash.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { copyFrom } from '../backup/copy.ts';
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
