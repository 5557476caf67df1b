import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
} from 'node:fs';
import { join } from 'node:path';

/** Where the files of an earlier ledger are, below the data directory. */
const SET_ASIDE: string = 'set-aside';
const LOG = 'holdover.db-wal';
/** Folders of a data directory that hold files of users. */
const FILES = ['blobs', 'blobs-leaving', 'userdata'];
const NOTES = 'blobs-unrecorded';
/** Everything of one ledger. A moved `folder.id` tells running processes that their files are gone. */
const MOVED = ['folder.id', 'ledger.id', 'holdover.db', LOG, 'holdover.db-shm', NOTES, ...FILES];
/** Users keep their identity, and the folder that is set aside is a whole data directory. */
const COPIED = ['secret.key'];

/** True when files of users are in a data directory. */
export function holdsFiles(root: string): boolean {
  return FILES.some((name) => hasFile(join(root, name)));
}

function hasFile(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.some((entry) => (entry.isDirectory() ? hasFile(join(folder, entry.name)) : true));
}

/** True when a database is gone whose last transactions, or whose files, are still there. */
export function lacksDatabase(root: string): boolean {
  if (sizeOf(join(root, 'holdover.db')) > 0) return false;
  return holdsFiles(root) || sizeOf(join(root, LOG)) > 0;
}

function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Moves ledger and files of a data directory into a dated folder of it, and gives that folder. */
export function setAside(root: string, now: Date): string {
  const folder = makeFolder(root, now);
  for (const name of COPIED) {
    if (existsSync(join(root, name))) copyFileSync(join(root, name), join(folder, name));
  }
  moveInto(folder, root, MOVED);
  return folder;
}

/** Moves only what is left of a database that is gone: its last transactions. */
export function setLogAside(root: string, now: Date): void {
  if (sizeOf(join(root, LOG)) > 0) moveInto(makeFolder(root, now), root, [LOG]);
}

function moveInto(folder: string, root: string, names: readonly string[]): void {
  for (const name of names) {
    if (existsSync(join(root, name))) renameSync(join(root, name), join(folder, name));
  }
}

/** A new folder of a data directory, for what must not be removed. */
export function makeFolder(root: string, now: Date): string {
  const time = now
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '-');
  const folder = freeName(join(root, SET_ASIDE, time));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

function freeName(path: string): string {
  for (let copy = 1; ; copy += 1) {
    const name = copy === 1 ? path : `${path}-${copy}`;
    if (!existsSync(name)) return name;
  }
}

/** The folder that was set aside with this id. */
export function setAsideWith(root: string, folderId: string): string | undefined {
  const parent = join(root, SET_ASIDE);
  if (!existsSync(parent)) return undefined;
  return readdirSync(parent)
    .map((name) => join(parent, name))
    .find((folder) => {
      const id = join(folder, 'folder.id');
      return existsSync(id) && readFileSync(id, 'utf8') === folderId;
    });
}
