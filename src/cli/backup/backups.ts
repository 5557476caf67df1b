import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Manifest, readManifest } from './manifest.ts';

/** A complete backup: a whole data folder with a manifest. */
export type Backup = {
  readonly name: string;
  readonly path: string;
  readonly manifest: Manifest;
};

/** A backup that cannot be used, and why. */
export type UnusableBackup = { readonly name: string; readonly why: string };

/** For example `0007-2026-11-22T17-40-01Z`. The number gives the order, because a clock may be set back. */
const BACKUP_NAME = /^(\d{4,})-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/;
/** The backup that is being made, or that a process left unfinished. */
const PARTIAL_NAME = 'partial';
/** The lock that a process holds while it makes a backup. */
export const BACKUP_LOCK = 'backup';
const OWN_NAMES = /^(partial|backup\.lock(-journal)?|lost\+found)$/;

/** Returns the path of the unfinished backup. */
export function partialPath(folder: string): string {
  return join(folder, PARTIAL_NAME);
}

/** Makes the folder of backups if it is absent. Throws when it contains anything other than backups. */
export function openBackupFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const others = readdirSync(folder).filter(
    (name) => !OWN_NAMES.test(name) && !BACKUP_NAME.test(name),
  );
  if (others.length === 0) return;
  throw new Error(`${folder} contains other files than backups: give a folder for backups only`);
}

/** Returns the backups in a folder, oldest first, and those that cannot be used. */
export function backupsIn(folder: string): {
  readonly complete: readonly Backup[];
  readonly unusable: readonly UnusableBackup[];
} {
  const complete: Backup[] = [];
  const unusable: UnusableBackup[] = [];
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    try {
      complete.push({ name, path, manifest: readManifest(path) });
    } catch (error) {
      unusable.push({ name, why: (error as Error).message });
    }
  }
  if (existsSync(partialPath(folder))) {
    unusable.push({ name: PARTIAL_NAME, why: 'is not a complete backup: it was never finished' });
  }
  return { complete, unusable };
}

/** Gives the finished backup its name, and returns that name. */
export async function finishPartial(folder: string, atMs: number): Promise<string> {
  const last = Math.max(0, ...namesIn(folder).map(numberOf));
  const time = new Date(atMs).toISOString().slice(0, 19).replaceAll(':', '-');
  const name = `${String(last + 1).padStart(4, '0')}-${time}Z`;
  await rename(partialPath(folder), join(folder, name));
  return name;
}

/**
 * Removes a backup. Removes its manifest first: a backup without one counts as incomplete, so half a backup is never
 * used.
 */
export async function removeBackup({ path }: Backup): Promise<void> {
  await rm(join(path, 'manifest.json'), { force: true });
  await rm(path, { recursive: true, force: true });
}

function namesIn(folder: string): readonly string[] {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names
    .filter((name) => BACKUP_NAME.test(name))
    .toSorted((a, b) => numberOf(a) - numberOf(b));
}

function numberOf(name: string): number {
  return Number(BACKUP_NAME.exec(name)?.[1] ?? 0);
}
