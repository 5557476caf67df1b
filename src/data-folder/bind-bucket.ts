import { randomUUID } from 'node:crypto';
import type { LedgerIdentity } from '../ledger/identity.ts';
import { type BindOptions, LedgerLacksFiles } from './bind-ledger.ts';

/** The ids in a bucket that holds the files of a ledger. */
export type BucketIdentity = {
  /** As the operator names it: `s3://BUCKET/PREFIX`. */
  readonly url: string;
  holdsFiles(): Promise<boolean>;
  readId(name: IdName | typeof UNFINISHED_COPY): Promise<string | undefined>;
  /** Writes an id unless there is one. */
  createId(name: IdName, id: string): Promise<void>;
  writeId(name: IdName, id: string): Promise<void>;
};

type IdName = 'folder.id' | 'ledger.id';

/** Files are being copied there: not all of them may be in place. Its text names the copy. */
export const UNFINISHED_COPY = 'copy-unfinished';

/** Why a place with an unfinished copy is refused. */
export function unfinishedCopyText(place: string): string {
  return (
    `${place} has a copy of files that was interrupted: run the same "holdover migrate" or ` +
    '"holdover restore" again'
  );
}

export type BindBucketOptions = BindOptions & {
  /** The id of a data directory that holds no files: its ledger may take a bucket instead. */
  readonly unusedFolderId?: string | undefined;
};

/**
 * Ties a ledger and a bucket to each other, as `bindDataDir` does with a folder, and returns the id of the
 * bucket. Throws with a sentence a person can act on.
 */
export async function bindBucket(
  bucket: BucketIdentity,
  ledger: LedgerIdentity,
  { acceptFiles = false, unusedFolderId }: BindBucketOptions = {},
): Promise<string> {
  // In this order: another process ties the ledger before it writes files.
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
    `--files ${url} holds files, and this ledger is new: put the ledger back that recorded them, ` +
    'let "holdover check --repair" record them anew, or use another PREFIX'
  );
}

function otherLedgerText({ url }: BucketIdentity): string {
  return `--files ${url} has files that belong to another ledger: use that one, or another PREFIX`;
}
