import { copyFileSync, existsSync, lstatSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

/** The folder for the files of earlier ledgers, below the data directory. */
const SET_ASIDE: string = 'set-aside';
const WAL_FILE = 'holdover.db-wal';
/** The folders of a data directory that hold files of users. */
const USER_FILE_FOLDERS = ['blobs', 'blobs-leaving', 'userdata'];
const UNRECORDED_FOLDER = 'blobs-unrecorded';
/**
 * The files and folders of one ledger, in the order in which they are moved. Running processes notice a moved
 * `folder.id` and stop.
 */
const MOVED_NAMES = [
  'folder.id',
  'ledger.id',
  'holdover.db',
  WAL_FILE,
  'holdover.db-shm',
  UNRECORDED_FOLDER,
  ...USER_FILE_FOLDERS,
];
/** Copied and not moved: users keep their ids, and the folder that is set aside is a complete data directory. */
const COPIED_NAME = 'secret.key';

/** Returns true when a data directory contains files of users. */
export function holdsFiles(root: string): boolean {
  return USER_FILE_FOLDERS.some((name) => hasFile(join(root, name)));
}

function hasFile(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.some((entry) => (entry.isDirectory() ? hasFile(join(folder, entry.name)) : true));
}

/** Returns true when the database is missing, but its last transactions or files exist. */
export function lacksDatabase(root: string): boolean {
  if (sizeOf(join(root, 'holdover.db')) > 0) return false;
  return holdsFiles(root) || sizeOf(join(root, WAL_FILE)) > 0;
}

function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Moves the ledger and the files of a data directory into a new dated folder inside it. Returns that folder. */
export function setAside(root: string, now: Date): string {
  const folder = makeAsideFolder(root, now);
  const copied = join(root, COPIED_NAME);
  if (existsSync(copied)) copyFileSync(copied, join(folder, COPIED_NAME));
  moveInto(folder, root, MOVED_NAMES);
  return folder;
}

/** Moves the last transactions of a missing database into a new dated folder. */
export function setWalAside(root: string, now: Date): void {
  if (sizeOf(join(root, WAL_FILE)) > 0) moveInto(makeAsideFolder(root, now), root, [WAL_FILE]);
}

function moveInto(folder: string, root: string, names: readonly string[]): void {
  for (const name of names) {
    if (existsSync(join(root, name))) renameSync(join(root, name), join(folder, name));
  }
}

/** Creates a dated folder in `set-aside` and returns its path. */
function makeAsideFolder(root: string, now: Date): string {
  const folder = join(root, SET_ASIDE, now.toISOString().replaceAll(':', '-'));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
