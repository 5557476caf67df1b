import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Manifest, readManifest } from './manifest.ts';

/** A backup in a folder of backups; each is a whole data folder, and a manifest. */
export type Backup = {
  readonly name: string;
  readonly path: string;
  readonly manifest: Manifest;
};

/** A backup that cannot be used, and why. */
export type UnusableBackup = { readonly name: string; readonly why: string };

/** `0007-2026-11-22T17-40-01Z`: counted, because clocks are set back now and then. */
const BACKUP_NAME = /^(\d{4,})-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ$/;
/** The one that is being made, or was when its process died. */
const PARTIAL_NAME = 'partial';
/** Held while a backup is made. */
export const BACKUP_LOCK = 'backup';
const OWN_NAMES = /^(partial|backup\.lock(-journal)?|lost\+found)$/;

export function partialPath(folder: string): string {
  return join(folder, PARTIAL_NAME);
}

/** Makes a folder for backups; throws when it has anything else in it. */
export function openBackupFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const others = readdirSync(folder).filter(
    (name) => !OWN_NAMES.test(name) && !BACKUP_NAME.test(name),
  );
  if (others.length === 0) return;
  throw new Error(`${folder} has other things in it than backups: give a folder of its own`);
}

/** Oldest first. */
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

/** Gives the finished backup its name. */
export async function finishPartial(folder: string, atMs: number): Promise<string> {
  const last = Math.max(0, ...namesIn(folder).map(numberOf));
  const time = new Date(atMs).toISOString().slice(0, 19).replaceAll(':', '-');
  const name = `${String(last + 1).padStart(4, '0')}-${time}Z`;
  await rename(partialPath(folder), join(folder, name));
  return name;
}

/** First of all it stops being a complete one. */
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
