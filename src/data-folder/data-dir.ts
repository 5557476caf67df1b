import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  type BucketIdentity,
  UNFINISHED_COPY,
  bindBucket,
  unfinishedCopyText,
} from './bind-bucket.ts';
import { type BindOptions, bindDataDir, idsOfFolder, writeFileAtomically } from './bind-ledger.ts';
import type { LedgerIdentity } from '../ledger/identity.ts';
import { syncPathNow } from '../lib/durability.ts';
import { holdsFiles } from './set-aside.ts';

/** Where things are below `--data-dir`. */
export type DataDir = Awaited<ReturnType<typeof openDataDir>>;

export const SECRET_BYTES: number = 32;

/** Opens the data directory of a ledger; refuses one that holds files of another ledger, or of none. */
export async function openDataDir(
  root: string,
  ledger: LedgerIdentity,
  { bucket, ...options }: OpenDirOptions = {},
) {
  makeDataDir(root);
  const filesId = bucket
    ? await bindFilesInBucket(root, ledger, { ...options, bucket })
    : await bindFilesInFolder(root, ledger, options);
  return {
    root,
    /** The id of the bucket with its files; `undefined`: they are in this directory. */
    bucketId: filesId,
    database: databasePath(root),
    spool: join(root, 'spool'),
    userData: join(root, 'userdata'),
    /** Copies of node definitions, for the time after a restart. */
    objectInfo: join(root, 'object-info'),
    /** Signs download links and derives user ids from keys; made once, readable by the owner only. */
    secret: await loadSecret(root, ledger),
  };
}

export type OpenDirOptions = BindOptions & {
  /** Has the files in place of the directory. */
  readonly bucket?: BucketIdentity | undefined;
};

/** Names the bucket with the files of this directory, so that no start forgets it. */
const BUCKET_FILE = 'files.url';

async function bindFilesInFolder(
  root: string,
  ledger: LedgerIdentity,
  options: BindOptions,
): Promise<undefined> {
  await refuseOtherPlace(root, undefined);
  if (existsSync(join(root, UNFINISHED_COPY)))
    throw new Error(unfinishedCopyText(`--data-dir ${root}`));
  await bindDataDir(root, ledger, options);
}

/**
 * Refuses files that are not where they belong, or not all of them: the directory when a bucket has its files, and a
 * bucket whose files have been copied into the directory since.
 */
export async function refuseOtherPlace(
  root: string,
  bucket: Pick<BucketIdentity, 'url' | 'readId'> | undefined,
): Promise<void> {
  const url = bucketOf(root);
  if (bucket === undefined) {
    if (url === undefined) return;
    throw new Error(
      `the files of --data-dir ${root} are in a bucket: give --files ${url} as before`,
    );
  }
  if ((await bucket.readId(UNFINISHED_COPY)) !== undefined)
    throw new Error(unfinishedCopyText(`--files ${bucket.url}`));
  const { folderId } = idsOfFolder(root);
  if (url !== undefined || folderId === undefined || !holdsFiles(root)) return;
  if ((await bucket.readId('folder.id')) === folderId)
    throw new Error(`the files of --data-dir ${root} are in that folder: leave --files out`);
}

/** The bucket that has the files of a data directory; `undefined`: none is named there. */
export function bucketOf(root: string): string | undefined {
  const path = join(root, BUCKET_FILE);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/** Names the bucket that has the files from now on; `undefined`: the directory has them. */
export function placeBucketOf(root: string, url: string | undefined): void {
  const path = join(root, BUCKET_FILE);
  if (url !== undefined) writeFileAtomically(path, url);
  else rmSync(path, { force: true });
  syncPathNow(root);
}

async function bindFilesInBucket(
  root: string,
  ledger: LedgerIdentity,
  { bucket, ...options }: BindOptions & { readonly bucket: BucketIdentity },
): Promise<string> {
  await refuseOtherPlace(root, bucket);
  const unusedFolderId = holdsFiles(root) ? undefined : idsOfFolder(root).folderId;
  const id = await bindBucket(bucket, ledger, { ...options, unusedFolderId });
  writeFileAtomically(join(root, BUCKET_FILE), bucket.url);
  return id;
}

/** Makes the folder unless it is there. */
export function makeDataDir(root: string): void {
  try {
    mkdirSync(join(root, 'spool'), { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`--data-dir ${root} cannot be used: ${reason}`, { cause: error });
  }
}

/** The verified copy of a backup, while its files take their places in the data directory. */
export const UNFINISHED_RESTORE: string = 'restore-unfinished';

/** Some files may be those of the backup, others not yet. */
export function refuseUnfinishedRestore(root: string): void {
  if (!existsSync(join(root, UNFINISHED_RESTORE))) return;
  throw new Error(
    `--data-dir ${root} has a restore that was interrupted: run "holdover restore" again, with ` +
      '--replace, which removes nothing',
  );
}

/** Where the ledger of a data directory is. */
export function databasePath(root: string): string {
  return join(root, 'holdover.db');
}

async function loadSecret(root: string, ledger: LedgerIdentity): Promise<Buffer> {
  if (ledger.secret === undefined) return readSecret(root);
  // A shared ledger that takes over the data of a single process keeps its users and its links.
  return ledger.secret(existsSync(secretPath(root)) ? readSecret(root) : randomBytes(SECRET_BYTES));
}

/** Stores the secret of a ledger that other processes shared in the folder of one process. */
export function placeSecret(root: string, secret: Buffer): void {
  writeFileAtomically(secretPath(root), secret);
}

/** The secret in the folder; `undefined`: there is none. */
export function secretIn(root: string): Buffer | undefined {
  return existsSync(secretPath(root)) ? readSecret(root) : undefined;
}

function secretPath(root: string): string {
  return join(root, 'secret.key');
}

function readSecret(root: string): Buffer {
  const path = secretPath(root);
  if (!existsSync(path)) writeFileAtomically(path, randomBytes(SECRET_BYTES));
  const secret = readFileSync(path);
  if (secret.length !== SECRET_BYTES) {
    throw new Error(`${path} is damaged: remove it, and all users of keys become new users`);
  }
  return secret;
}
