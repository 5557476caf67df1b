import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Where things are below `--data-dir`. */
export type DataDir = {
  readonly root: string;
  readonly database: string;
  readonly spool: string;
  readonly userData: string;
  /** Copies of node definitions, for the time after a restart. */
  readonly objectInfo: string;
  /** Signs download addresses and tells users apart; made once, readable by the owner only. */
  readonly secret: Buffer;
};

/** A ledger that several processes use with one data directory. */
export type SharedLedger = {
  /** Tells it from others. */
  readonly id: string;
  /** The id of the folder its files are in; `proposal` becomes it when there is none yet. */
  readonly folder: (proposal: string) => Promise<string>;
  /** Of all processes; `proposal` becomes it when there is none yet. */
  readonly secret: (proposal: Buffer) => Promise<Buffer>;
};

const SECRET_BYTES = 32;
const ID_CHARS = randomUUID().length;
/** It is written in one go. */
const MADE_WITHIN_MS = 2000;

/** For one process that has it alone. */
export function openDataDir(root: string): DataDir {
  prepare(root);
  refuseFilesOfOthers(root, undefined);
  rmSync(ownerFile(root), { force: true });
  return { ...placesIn(root), secret: secretIn(root) };
}

/** For one of several processes. */
export async function shareDataDir(root: string, ledger: SharedLedger): Promise<DataDir> {
  prepare(root);
  refuseFilesOfOthers(root, ledger.id);
  await refuseOtherFolder(root, ledger);
  own(root, ledger.id);
  // Who goes on with the data of a single process keeps its users and its links.
  const proposal = existsSync(secretFile(root)) ? secretIn(root) : randomBytes(SECRET_BYTES);
  return { ...placesIn(root), secret: await ledger.secret(proposal) };
}

function prepare(root: string): void {
  try {
    mkdirSync(join(root, 'spool'), { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`--data-dir ${root} cannot be used: ${reason}`, { cause: error });
  }
}

function placesIn(root: string): Omit<DataDir, 'secret'> {
  return {
    root,
    database: databaseIn(root),
    spool: join(root, 'spool'),
    userData: join(root, 'userdata'),
    objectInfo: join(root, 'object-info'),
  };
}

/** Where the ledger of a data directory is. */
export function databaseIn(root: string): string {
  return join(root, 'holdover.db');
}

/** Says which shared ledger knows the blobs here; without it, the database beside them does. */
function ownerFile(root: string): string {
  return join(root, 'ledger.id');
}

function own(root: string, ledgerId: string): void {
  const path = ownerFile(root);
  const isOurs = existsSync(path) && readFileSync(path, 'utf8') === ledgerId;
  if (!isOurs) writeWhole(path, ledgerId);
}

/** Whole or not at all: who is killed half-way leaves no file that nobody can use. */
function writeWhole(path: string, content: string | Buffer): void {
  const fresh = `${path}.${randomUUID()}`;
  writeFileSync(fresh, content, { mode: 0o600, flush: true });
  renameSync(fresh, path);
}

/** The engine removes blobs its ledger does not know: with a wrong one it would remove them all. */
function refuseFilesOfOthers(root: string, ledgerId: string | undefined): void {
  if (!existsSync(join(root, 'blobs'))) return;
  const path = ownerFile(root);
  const owner = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  if (owner === ledgerId) return;
  const whose = owner === undefined ? 'the database in it' : 'another --ledger';
  throw new Error(`--data-dir ${root} has files that belong to ${whose}: use another folder`);
}

/** Two folders would look like one to all but whoever asks for a file. */
async function refuseOtherFolder(root: string, ledger: SharedLedger): Promise<void> {
  const id = await folderId(join(root, 'folder.id'));
  if ((await ledger.folder(id)) === id) return;
  throw new Error(
    `--data-dir ${root} is not the folder that other processes of this --ledger use: ` +
      'give all of them the same one',
  );
}

/** Of all that come to an empty folder one makes it, and the others wait for that. */
async function folderId(path: string): Promise<string> {
  try {
    writeFileSync(path, randomUUID(), { mode: 0o600, flush: true, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  for (const untilMs = Date.now() + MADE_WITHIN_MS; Date.now() < untilMs; await delay(20)) {
    const id = readFileSync(path, 'utf8');
    if (id.length === ID_CHARS) return id;
  }
  throw new Error(`${path} is damaged: remove it, and the key folder of the ledger`);
}

function secretFile(root: string): string {
  return join(root, 'secret.key');
}

function secretIn(root: string): Buffer {
  const path = secretFile(root);
  if (!existsSync(path)) writeWhole(path, randomBytes(SECRET_BYTES));
  const secret = readFileSync(path);
  if (secret.length !== SECRET_BYTES) {
    throw new Error(`${path} is damaged: remove it, and all users of keys become new users`);
  }
  return secret;
}
