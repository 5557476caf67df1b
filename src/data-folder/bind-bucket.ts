import { randomUUID } from 'node:crypto';
import type { LedgerIdentity } from '../ledger/identity.ts';
import { type BindOptions, LedgerLacksFiles } from './bind-ledger.ts';

/** Reads and writes the ids in a bucket with the files of a ledger. */
export type BucketIdentity = {
  /** The value of `--files`: `s3://BUCKET/PREFIX`. */
  readonly url: string;
  holdsFiles(): Promise<boolean>;
  readId(name: IdName | typeof UNFINISHED_COPY): Promise<string | undefined>;
  /** Writes an id, unless the bucket already has one. */
  createId(name: IdName, id: string): Promise<void>;
  writeId(name: IdName, id: string): Promise<void>;
};

type IdName = 'folder.id' | 'ledger.id';

/** The name of an object that exists while a restore copies files into a bucket. */
export const UNFINISHED_COPY = 'copy-unfinished';

export type BindBucketOptions = BindOptions & {
  /** The id of a data directory without files. A ledger that is bound to it may be bound to a bucket instead. */
  readonly unusedFolderId?: string | undefined;
};

/**
 * Binds a ledger and a bucket to each other, as `bindDataDir` does with a folder. Returns the id of the bucket.
 * Throws an error that says what to do. Throws `LedgerLacksFiles` when the ledger is new and the bucket has files.
 */
export async function bindBucket(
  bucket: BucketIdentity,
  ledger: LedgerIdentity,
  { acceptFiles = false, unusedFolderId }: BindBucketOptions = {},
): Promise<string> {
  // Look for files before reading the bound id: another process binds the ledger before it writes files.
  const hasFiles = await bucket.holdsFiles();
  const boundId = await ledger.folder();
  const recordedBy = await bucket.readId('ledger.id');
  const foundId = await bucket.readId('folder.id');
  const mayTake = foundId === undefined && !hasFiles && boundId === unusedFolderId;
  if (boundId !== undefined && foundId !== boundId && !mayTake)
    throw new Error(wrongBucketText(bucket, ledger));
  if (hasFiles && recordedBy !== ledger.id && !acceptFiles) {
    if (boundId === undefined) throw new LedgerLacksFiles(newLedgerText(bucket));
    throw new Error(otherLedgerText(bucket));
  }
  await bucket.createId('folder.id', boundId ?? randomUUID());
  const folderId = await bucket.readId('folder.id');
  if (folderId === undefined || (await ledger.tie(folderId)) !== folderId)
    throw new Error(wrongBucketText(bucket, ledger));
  if (recordedBy !== ledger.id) await bucket.writeId('ledger.id', ledger.id);
  return folderId;
}

function wrongBucketText({ url }: BucketIdentity, { storedIn }: LedgerIdentity): string {
  const use =
    storedIn === 'service'
      ? 'give all processes of this --ledger the same --files'
      : 'use the --files it was used with, or copy its files there first';
  return `--files ${url} does not have the files of this ledger: ${use}`;
}

function newLedgerText({ url }: BucketIdentity): string {
  return (
    `--files ${url} holds files, and this ledger is new: restore the ledger that recorded them, ` +
    'record them again with "holdover check --repair", or use another PREFIX'
  );
}

function otherLedgerText({ url }: BucketIdentity): string {
  return `--files ${url} has files that belong to another ledger: use that one, or another PREFIX`;
}
