import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { UNFINISHED_RESTORE, secretIn } from '../../data-folder/data-dir.ts';
import type { InspectedDatabase } from '../../ledger/sqlite/inspect.ts';
import { hashOfStream } from '../../lib/hash.ts';
import { isStorageUnavailable } from '../../lib/storage-errors.ts';
import { blobPath } from '../../blobs/blob-paths.ts';
import type { StoredBlob } from '../../blobs/blobs.ts';
import { megabytes } from '../printable-name.ts';
import { forEachFile, sizeOf } from '../progress.ts';
import type { OpenedData } from './opened-data.ts';
import type { FilesPlace } from './places.ts';

/** The result of a check. */
export type CheckReport = {
  /** A sentence for each problem. */
  readonly problems: readonly string[];
  /** The number of files on record, and their size. */
  readonly recorded: { readonly files: number; readonly bytes: number };
  /** The undamaged files without a record: `--repair` records them. */
  readonly orphans: readonly StoredBlob[];
  /** True when the ledger is not that of the files: `--repair` binds it to them. */
  readonly acceptFiles: boolean;
};

/** The age up to which a running server may still record a file. */
const RECENT_MS = 60_000;

/**
 * Checks all files against the records. Changes nothing; a server may run meanwhile. It writes a file shortly before it
 * records it, so with `inUse` recent files are no orphans.
 */
export async function check(
  opened: OpenedData,
  { inUse }: { readonly inUse: boolean },
): Promise<CheckReport> {
  const { problems, state, isOther } = await inspectLedger(opened);
  // When the records cannot be read, every file would seem to have no record.
  if (state === 'damaged')
    return { problems, recorded: { files: 0, bytes: 0 }, orphans: [], acceptFiles: false };
  const placedBeforeMs = inUse ? Date.now() - RECENT_MS : Infinity;
  const list = () => filesOnRecord(opened, state);
  const { faults, ...compared } = await compare(opened, placedBeforeMs, list);
  const acceptFiles = isOther || state !== 'ok';
  return { ...compared, problems: [...problems, ...faults], acceptFiles };
}

type InspectedLedger = {
  readonly problems: readonly string[];
  readonly state: InspectedDatabase['state'];
  /** True when the files were recorded by another ledger. */
  readonly isOther: boolean;
};

/** Finds a sentence for each problem of the ledger and of its ties to the files. */
export async function inspectLedger({
  dataDir,
  redis,
  ledger,
  belongs,
}: OpenedData): Promise<InspectedLedger> {
  const { state, why } = ledger.inspect();
  const isOther = state === 'ok' && !(await belongs());
  const problems = redis ? [] : secretProblems(dataDir);
  if (existsSync(join(dataDir, UNFINISHED_RESTORE)))
    problems.push('A restore was interrupted: run holdover restore again.');
  if (state !== 'ok') problems.push(`The database is ${state} (${why}). ${LEDGER_ADVICE}`);
  if (isOther) problems.push(OTHER_LEDGER);
  return { problems, state, isOther };
}

const LEDGER_ADVICE =
  'Restore a backup with holdover restore, or give the --ledger of the servers.';
const OTHER_LEDGER =
  'The files were recorded by another ledger: give the --ledger of their servers, or use check --repair to bind this ' +
  'one to them.';

function secretProblems(dataDir: string): string[] {
  try {
    if (secretIn(dataDir)) return [];
    return ['secret.key is absent: without it every user with a key is a new user.'];
  } catch (error) {
    return [(error as Error).message];
  }
}

/** Files on record by their hash, with the names that clients know. */
type RecordedFiles = Map<string, { hash: string; sizeBytes: number; names: string[] }>;

async function filesOnRecord(
  { ledger }: OpenedData,
  state: InspectedDatabase['state'],
): Promise<RecordedFiles> {
  const files: RecordedFiles = new Map();
  if (state !== 'ok') return files;
  for await (const record of ledger.records(['assets'])) {
    if (record.kind !== 'assets') continue;
    const { hash, sizeBytes, user, filePath } = record.row;
    const file = files.get(hash) ?? { hash, sizeBytes, names: [] };
    file.names.push(`${filePath} of ${user}`);
    files.set(hash, file);
  }
  return files;
}

async function compare(
  { place, blobs }: OpenedData,
  placedBeforeMs: number,
  list: () => Promise<RecordedFiles>,
) {
  const onRecord = [...(await list()).values()];
  const hashes = new Set(onRecord.map(({ hash }) => hash));
  const unrecorded: StoredBlob[] = [];
  for await (const blob of blobs.list())
    if (!hashes.has(blob.hash) && blob.placedAtMs <= placedBeforeMs) unrecorded.push(blob);
  const faults = new Map<string, Fault>();
  await forEachFile([...onRecord, ...unrecorded], async ({ hash }) => {
    const fault = await faultOf(place, hash);
    if (fault) faults.set(hash, fault);
  });
  // A server that runs may have removed and recorded files since the first list.
  const after = await list();
  const damaged = onRecord.filter(({ hash }) => faults.has(hash) && after.has(hash));
  const orphans = unrecorded.filter(
    ({ hash }) => !after.has(hash) && faults.get(hash) !== 'missing',
  );
  return {
    recorded: { files: onRecord.length, bytes: sizeOf(onRecord) },
    faults: [
      ...damaged.map(
        ({ hash, names }) => `${blobPath(hash)} is ${faults.get(hash)}: ${names.join(', ')}`,
      ),
      ...orphans.map(
        ({ hash, sizeBytes }) =>
          `${blobPath(hash)} has no record (${megabytes(sizeBytes)})` +
          (faults.has(hash) ? ' and is damaged' : ': --repair records it'),
      ),
    ],
    orphans: orphans.filter(({ hash }) => !faults.has(hash)),
  };
}

type Fault = 'missing' | 'damaged' | 'unreadable';

async function faultOf(place: FilesPlace, hash: string): Promise<Fault | undefined> {
  try {
    const bytes = await place.open(blobPath(hash));
    if (bytes === undefined) return 'missing';
    return (await hashOfStream(bytes)) === hash ? undefined : 'damaged';
  } catch (error) {
    // The state of files is unknown while the bucket cannot be reached.
    if (isStorageUnavailable(error)) throw error;
    return 'unreadable';
  }
}
