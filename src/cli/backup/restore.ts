import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerSource } from '../../config/ledger.ts';
import {
  UNFINISHED_RESTORE,
  databasePath,
  placeBucketOf,
  placeSecret,
} from '../../data-folder/data-dir.ts';
import { UNFINISHED_COPY } from '../../data-folder/bind-bucket.ts';
import type { StoredRecord, RecordKind, RecordRows } from '../../ledger/records.ts';
import { type SharedRedis, openSharedRedis } from '../../ledger/redis/open-shared.ts';
import { lockDatabase, openSqliteLedger } from '../../ledger/sqlite/sqlite-ledger.ts';
import { blobPath } from '../../blobs/blob-paths.ts';
import { reached } from '../../lib/crash-point.ts';
import { syncPath } from '../../lib/durability.ts';
import { silentLogger } from '../../observability/log.ts';
import type { OpenedBucket } from '../../blobs/bucket/open-bucket.ts';
import { forEachFile } from '../progress.ts';
import { withOpen } from '../with-open.ts';
import { isIntact } from './backup.ts';
import { type BackupHeader, type MissingBlob, type UserFile, linesOf } from './format.ts';
import { claimBucket, claimFolder, placeInFolder, refuseNested } from './places.ts';
import { END_NAMES } from '../../ledger/columns.ts';
import type { Ledger, PromptOutcome } from '../../ledger/ledger.ts';

export type RestoreOptions = {
  /** The absolute path of the folder of the backup. */
  readonly from: string;
  /** The absolute path of a data folder, absent or empty. */
  readonly dataDir: string;
  readonly ledger: LedgerSource;
  /** The bucket for the files; `undefined` puts them into the data folder. */
  readonly bucket: OpenedBucket | undefined;
};

/** A backup without its bytes and records. */
type BackupContent = {
  readonly header: BackupHeader;
  readonly records: number;
  readonly files: readonly RestoredFile[];
  readonly missing: readonly MissingBlob[];
};

/** A file of the backup, by its key in the data folder or bucket. */
type RestoredFile = Pick<UserFile, 'hash' | 'sizeBytes'> & {
  readonly key: string;
  readonly modifiedAtMs?: number;
};

/**
 * Restores a backup into an empty data folder. Verifies the whole backup before it changes anything. No server starts on
 * the folder before everything is in place; when the restore is interrupted, the next one begins anew.
 */
export async function restore(options: RestoreOptions): Promise<BackupContent> {
  const { from, dataDir, ledger, bucket } = options;
  const content = await contentOf(from);
  refuseNested(from, dataDir);
  await forEachFile(content.files, async ({ key, hash }) => {
    if (!(await isIntact(join(from, blobPath(hash)), hash)))
      throw new Error(`the backup ${from} is damaged: ${blobPath(hash)} (${key})`);
  });
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const unlock = lockDatabase(databasePath(dataDir));
  await claimFolder(dataDir).finally(unlock);
  await withOpen(await openLedger(ledger, dataDir, content.header), async (target) => {
    if (bucket) await claimBucket(bucket);
    await fill(options, target, content);
  });
  return content;
}

/** Reads the whole backup except its blobs. Throws when it is not as it was written. */
async function contentOf(from: string): Promise<BackupContent> {
  let header: BackupHeader | undefined;
  let records = 0;
  const files = new Map<string, RestoredFile>();
  const missing: MissingBlob[] = [];
  const add = (file: RestoredFile): unknown => files.set(file.key, file);
  for await (const line of linesOf(from)) {
    if (line.kind === 'backup') header = line;
    else if (line.kind === 'userFile') add({ ...line, key: `userdata/${line.path}` });
    else if (line.kind === 'missing') missing.push(line);
    else records += 1;
    if (line.kind === 'assets') add({ ...line.row, key: blobPath(line.row.hash) });
  }
  for (const { hash } of missing) files.delete(blobPath(hash));
  if (header === undefined) throw new Error(`the backup ${from} is empty`);
  return { header, records, files: [...files.values()], missing };
}

/** The ledger of a restore. `finishRestore` lets servers open it. */
type Target = Pick<SharedRedis, 'ledger' | 'identity' | 'close'> &
  Partial<Pick<SharedRedis, 'finishRestore'>>;

/** Opens an empty ledger. Its id is that of the backup, when the kind of the ledger is the same. */
async function openLedger(
  source: LedgerSource,
  root: string,
  header: BackupHeader,
): Promise<Target> {
  const newId = source.kind === header.ledger ? header.ledgerId : undefined;
  if (source.kind === 'redis')
    return openSharedRedis({ url: source.url, log: silentLogger(), restore: { newId } });
  const ledger = openSqliteLedger({ path: databasePath(root), newId });
  return { ledger, identity: ledger.identity, close: () => ledger.close() };
}

/** Copies the files and records into their places, then lets servers start on them. */
async function fill(
  { from, dataDir: root, bucket }: RestoreOptions,
  target: Target,
  { header, files }: BackupContent,
): Promise<void> {
  const folder = placeInFolder(root);
  const place = bucket?.objects ?? folder;
  await forEachFile(files, async ({ key, modifiedAtMs, ...file }) => {
    const path = join(from, blobPath(file.hash));
    await place.putFile(key, { ...file, path }, modifiedAtMs);
    reached('restore-file');
  });
  await loadRecords(recordsOf(from), target.ledger);
  const { identity } = target;
  const secret = Buffer.from(header.secret, 'base64');
  await identity.tie(header.folderId);
  if (identity.secret) await identity.secret(secret);
  else placeSecret(root, secret);
  await place.put('ledger.id', Buffer.from(identity.id));
  await place.put('folder.id', Buffer.from(header.folderId));
  if (bucket) placeBucketOf(root, bucket.identity.url);
  await folder.remove(UNFINISHED_RESTORE);
  await syncPath(root);
  await bucket?.objects.remove(UNFINISHED_COPY);
  await target.finishRestore?.();
}

async function* recordsOf(from: string): AsyncGenerator<StoredRecord> {
  for await (const line of linesOf(from)) if ('row' in line) yield line;
}

/** Writes that are sent together share one sync to the disk. */
const ROWS_AT_A_TIME = 100;

/** Writes all records into an empty ledger. Throws when one cannot be written. */
async function loadRecords(records: AsyncIterable<StoredRecord>, ledger: Ledger): Promise<void> {
  const batch: StoredRecord[] = [];
  const flush = async (): Promise<void> => {
    await Promise.all(batch.splice(0).map(({ kind, row }) => WRITERS[kind](ledger, row as never)));
  };
  for await (const record of records) {
    batch.push(record);
    // History is in the order in which prompts ended: write one after the other.
    if (record.kind === 'prompts' || batch.length === ROWS_AT_A_TIME) await flush();
    reached('restore-record');
  }
  await flush();
}

type Writers = {
  readonly [Kind in RecordKind]: (ledger: Ledger, row: RecordRows[Kind]) => Promise<unknown>;
};

const WRITERS: Writers = {
  prompts: writePrompt,
  jobs: ({ jobs }, row) => jobs.insert(row),
  jobKeys: ({ keys }, row) => keys.put('jobKeys', row),
  files: ({ files }, row) => files.claim(row),
  assets: ({ assets }, row) => assets.insert(row),
  assetKeys: ({ keys }, row) => keys.put('assetKeys', row),
  settings: ({ settings }, { user, id, valueJson }) => settings.merge(user, { [id]: valueJson }),
  assetLabels: ({ assetLabels }, { user, id, valueJson }) =>
    assetLabels.merge(user, { [id]: valueJson }),
  calls: ({ calls }, row) => calls.add([row]),
  modelCalls: ({ modelCalls }, row) => modelCalls.insert(row),
  replays: writeReplay,
};

async function writeReplay({ replays }: Ledger, row: RecordRows['replays']): Promise<void> {
  const { state, atMs, status, contentType, body } = row;
  await replays.reserve(row, 0);
  if (state !== 'reserved') await replays.settle(row, { state, atMs, status, contentType, body });
}

async function writePrompt({ prompts }: Ledger, row: RecordRows['prompts']): Promise<void> {
  if (row.state !== 'done') return await prompts.insert(row);
  await prompts.insert({ ...row, state: 'live' });
  const end: object = Object.fromEntries(END_NAMES.map((name) => [name, row[name]]));
  await prompts.finish(row.key, end as PromptOutcome);
}
