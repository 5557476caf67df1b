import { randomUUID } from 'node:crypto';
import { chmod, lstat, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hashFile } from '../../lib/hash.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { copyFrom } from '../backup/copy.ts';
import { type FoundFile, reasonOf } from './scan.ts';

/** A copy of a file as it was when it was found, or in a few words why there is none. */
type Copied =
  | { readonly ok: true; readonly file: SpooledFile }
  | { readonly ok: false; readonly why: string };

export type FileCopier = (found: FoundFile) => Promise<Copied>;

/** Copies files into a folder, never touching the original. */
export function createFileCopier(dir: string): FileCopier {
  return async (found) => {
    const path = join(dir, randomUUID());
    const error = await copyFrom(found.path, path);
    if (error) return { ok: false, why: reasonOf(error) };
    await chmod(path, 0o600);
    const file = { path, ...(await hashFile(path)) };
    if (await isUnchanged(found, file)) return { ok: true, file };
    await rm(path, { force: true });
    return { ok: false, why: 'changed, or broke off, while it was read' };
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
