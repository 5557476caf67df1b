import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { syncPath } from '../lib/durability.ts';
import { linkOrRenameNew } from '../lib/rename-new.ts';
import type { LedgerIdentity } from '../ledger/identity.ts';
import { holdsFiles } from './set-aside.ts';

export type BindOptions = {
  /** True to bind a new ledger to existing files, as `holdover check --repair` does. */
  readonly acceptFiles?: boolean;
};

/** Thrown when the ledger is new and the data directory has files that another ledger recorded. */
export class LedgerLacksFiles extends Error {}

const ID_CHARS = randomUUID().length;
/**
 * How long to wait for another process to write an id. On file systems without hard links the file is empty at first.
 */
const ID_WRITE_TIMEOUT_MS = 2000;

/**
 * Binds a ledger and a data directory to each other. Throws an error that says what to do when the directory has
 * files of another ledger, and `LedgerLacksFiles` when the ledger is new.
 */
export async function bindDataDir(
  root: string,
  ledger: LedgerIdentity,
  { acceptFiles = false }: BindOptions = {},
): Promise<void> {
  // Look for files before reading the bound id: another process binds the ledger before it writes files.
  const hasFiles = holdsFiles(root);
  const boundFolderId = await ledger.folder();
  const { folderId: foundId, ledgerId: recordedBy } = idsOfFolder(root);
  // A database that was moved without its files is bound to its new folder. With Redis the folder may be the wrong one.
  const mayTake = ledger.storedIn === 'folder' && (foundId === undefined || !hasFiles);
  if (boundFolderId !== undefined && foundId !== boundFolderId && !mayTake)
    throw new Error(wrongFolderText(root, ledger));
  if (hasFiles && recordedBy !== ledger.id) {
    const isLost = boundFolderId === undefined;
    if (isLost && !acceptFiles) throw new LedgerLacksFiles(newLedgerText(root, ledger.storedIn));
    if (recordedBy !== undefined && !acceptFiles) throw new Error(otherLedgerText(root));
  }
  const folderId = await folderIdIn(root, boundFolderId);
  if ((await ledger.tie(folderId)) !== folderId) throw new Error(wrongFolderText(root, ledger));
  if (recordedBy !== ledger.id) writeFileAtomically(join(root, 'ledger.id'), ledger.id);
}

/** Returns the id of a data folder, and the id of the ledger that recorded its files. */
export function idsOfFolder(
  root: string,
): Readonly<Record<'folderId' | 'ledgerId', string | undefined>> {
  return { folderId: textIn(root, 'folder.id'), ledgerId: textIn(root, 'ledger.id') };
}

/** Returns the text of a file in the data folder; `undefined` when there is none. */
export function textIn(root: string, name: string): string | undefined {
  const path = join(root, name);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/**
 * Returns the id of a folder. When several processes start on an empty folder, one creates the id and the others wait
 * for it.
 */
async function folderIdIn(root: string, boundFolderId: string | undefined): Promise<string> {
  const path = join(root, 'folder.id');
  if (boundFolderId !== undefined && textIn(root, 'folder.id') !== boundFolderId)
    writeFileAtomically(path, boundFolderId);
  if (!existsSync(path)) await writeNewFile(path, randomUUID());
  for (const untilMs = Date.now() + ID_WRITE_TIMEOUT_MS; Date.now() < untilMs; await delay(20)) {
    const id = readFileSync(path, 'utf8');
    if (id.length === ID_CHARS) return id;
  }
  throw new Error(`${path} is damaged: restore it from a copy`);
}

/**
 * Returns the text of the error about a data directory whose files no ledger has recorded, with the possible
 * solutions.
 */
export function newLedgerText(root: string, storedIn: LedgerIdentity['storedIn']): string {
  const ledger = storedIn === 'folder' ? 'the ledger in it' : 'this --ledger';
  return (
    `--data-dir ${root} holds files, and ${ledger} is new${formerLedgerHint(root, storedIn)}: ` +
    'restore the ledger that recorded them (from a backup with "holdover restore"), ' +
    'record them again with "holdover check --repair", or start once with --start-anew, ' +
    `which moves them into ${join(root, 'set-aside')} and removes nothing`
  );
}

/** Says which kind of ledger recorded the files: ids of Redis ledgers are UUIDs, ids of databases are not. */
function formerLedgerHint(root: string, storedIn: LedgerIdentity['storedIn']): string {
  const recordedBy = textIn(root, 'ledger.id');
  const isInRedis = recordedBy?.includes('-');
  if (storedIn === 'folder' && isInRedis) return ' (a ledger in Redis recorded them, see --ledger)';
  if (storedIn === 'service' && isInRedis) return ' (another ledger in Redis recorded them)';
  return storedIn === 'service' ? ' (the database in the folder recorded them)' : '';
}

function otherLedgerText(root: string): string {
  return `--data-dir ${root} has files that belong to another --ledger: use that one, or another folder`;
}

function wrongFolderText(root: string, { storedIn }: LedgerIdentity): string {
  return storedIn === 'service'
    ? `--data-dir ${root} is not the folder that other processes of this --ledger use: give all of them the same one`
    : `the ledger ${join(root, 'holdover.db')} does not belong to the files in --data-dir ${root}: ` +
        'put ledger and files of one data directory together again (see its folder set-aside)';
}

/** Writes a file, unless another process has written it. Resolves when the file is on the disk. */
async function writeNewFile(path: string, content: string): Promise<void> {
  const temporaryPath = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporaryPath, content, { mode: 0o600, flush: true });
    await linkOrRenameNew(temporaryPath, path);
    await syncPath(dirname(path));
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

/** Writes a small file completely or not at all, also when the process is killed. */
export function writeFileAtomically(path: string, content: string | Buffer): void {
  const temporaryPath = `${path}.${randomUUID()}`;
  writeFileSync(temporaryPath, content, { mode: 0o600, flush: true });
  renameSync(temporaryPath, path);
}
