import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BucketIdentity, UNFINISHED_COPY, bindBucket } from './bind-bucket.ts';
import {
  type BindOptions,
  bindDataDir,
  idsOfFolder,
  textIn,
  writeFileAtomically,
} from './bind-ledger.ts';
import type { LedgerIdentity } from '../ledger/identity.ts';
import { holdsFiles } from './set-aside.ts';

/** The paths and ids of an opened `--data-dir`. */
export interface DataDir {
  readonly root: string;
  /** The id of the bucket with its files; `undefined` when they are in this directory. */
  readonly bucketId: string | undefined;
  readonly database: string;
  readonly spool: string;
  readonly userData: string;
  /** The folder with copies of node definitions, which are used after a restart. */
  readonly objectInfo: string;
  /**
   * Signs download links, and derives user ids from keys. It is created once; only the owner of the file can read
   * it.
   */
  readonly secret: Buffer;
}

/** The length of the secret in `secret.key`. */
export const SECRET_BYTES: number = 32;

/**
 * Opens the data directory of a ledger. Throws an error that says what to do when its files belong to another ledger
 * or to none.
 */
export async function openDataDir(
  root: string,
  ledger: LedgerIdentity,
  options: OpenDirOptions = {},
): Promise<DataDir> {
  makeDataDir(root);
  return {
    root,
    bucketId: await bindFiles(root, ledger, options),
    database: databasePath(root),
    spool: join(root, 'spool'),
    userData: join(root, 'userdata'),
    objectInfo: join(root, 'object-info'),
    secret: await loadSecret(root, ledger),
  };
}

export type OpenDirOptions = BindOptions & {
  /** The bucket that has the files; absent when the directory has them. */
  readonly bucket?: BucketIdentity | undefined;
};

/** The name of the file with the URL of the bucket, so that a start without `--files` is refused. */
const BUCKET_FILE = 'files.url';

/** Returns the id of the bucket that has the files; `undefined` when the directory has them. */
async function bindFiles(
  root: string,
  ledger: LedgerIdentity,
  { bucket, ...options }: OpenDirOptions,
): Promise<string | undefined> {
  await refuseOtherPlace(root, bucket);
  if (bucket === undefined) {
    await bindDataDir(root, ledger, options);
    return undefined;
  }
  const unusedFolderId = holdsFiles(root) ? undefined : idsOfFolder(root).folderId;
  const id = await bindBucket(bucket, ledger, { ...options, unusedFolderId });
  placeBucketOf(root, bucket.url);
  return id;
}

/**
 * Throws when the files are in the other place, or incomplete: when no bucket is given and one has the files, and
 * when a bucket is given but its files were copied into the directory.
 */
export async function refuseOtherPlace(
  root: string,
  bucket: BucketIdentity | undefined,
): Promise<void> {
  const url = textIn(root, BUCKET_FILE);
  if (bucket === undefined) {
    if (url === undefined) return;
    throw new Error(
      `the files of --data-dir ${root} are in a bucket: give --files ${url} as before`,
    );
  }
  if ((await bucket.readId(UNFINISHED_COPY)) !== undefined)
    throw new Error(
      `--files ${bucket.url} has a restore that was interrupted: run "holdover restore" again`,
    );
  const { folderId } = idsOfFolder(root);
  if (url !== undefined || folderId === undefined || !holdsFiles(root)) return;
  if ((await bucket.readId('folder.id')) === folderId)
    throw new Error(`the files of --data-dir ${root} are in that folder: leave --files out`);
}

/** Stores the URL of the bucket that has the files. */
export function placeBucketOf(root: string, url: string): void {
  writeFileAtomically(join(root, BUCKET_FILE), url);
}

/** Creates the data directory if it does not exist. Throws when it cannot be used. */
export function makeDataDir(root: string): void {
  try {
    mkdirSync(join(root, 'spool'), { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`--data-dir ${root} cannot be used: ${reason}`, { cause: error });
  }
}

/** The file that exists during a restore. While it exists, no server may use the data directory. */
export const UNFINISHED_RESTORE: string = 'restore-unfinished';

/** Throws when a restore was interrupted: then only some files are those of the backup. */
export function refuseUnfinishedRestore(root: string): void {
  if (!existsSync(join(root, UNFINISHED_RESTORE))) return;
  throw new Error(
    `--data-dir ${root} has a restore that was interrupted: run "holdover restore" again`,
  );
}

/** Returns the path of the database of a data directory. */
export function databasePath(root: string): string {
  return join(root, 'holdover.db');
}

async function loadSecret(root: string, ledger: LedgerIdentity): Promise<Buffer> {
  // A ledger in Redis that takes over the data of one process also takes its secret, so that users and links stay
  // valid.
  const found = secretIn(root);
  const secret = found ?? randomBytes(SECRET_BYTES);
  if (ledger.secret) return await ledger.secret(secret);
  if (!found) placeSecret(root, secret);
  return secret;
}

/** Writes the secret into the folder of a process with its own database. */
export function placeSecret(root: string, secret: Buffer): void {
  writeFileAtomically(secretPath(root), secret);
}

/** Returns the secret in the folder; `undefined` when there is none. Throws when it is damaged. */
export function secretIn(root: string): Buffer | undefined {
  const path = secretPath(root);
  if (!existsSync(path)) return undefined;
  const secret = readFileSync(path);
  if (secret.length === SECRET_BYTES) return secret;
  throw new Error(`${path} is damaged: remove it, and all users of keys become new users`);
}

function secretPath(root: string): string {
  return join(root, 'secret.key');
}
