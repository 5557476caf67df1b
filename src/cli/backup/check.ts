import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET_BYTES, UNFINISHED_RESTORE } from '../../data-folder/data-dir.ts';
import type { InspectedDatabase } from '../../ledger/sqlite/inspect.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { createHasher } from '../../lib/hash.ts';
import { isStorageUnavailable } from '../../lib/storage-errors.ts';
import type { Blobs, StoredBlob } from '../../blobs/blobs.ts';
import { WrongBytes } from '../../blobs/bucket/errors.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import { blobPath } from './format.ts';
import type { LedgerRecords, OpenedData } from './opened-data.ts';

/** A file on record that is missing or damaged, and the names under which clients know it. */
export type DamagedFile = {
  readonly hash: string;
  readonly path: string;
  readonly why: 'missing' | 'damaged' | 'unreadable';
  readonly names: readonly FileName[];
};

type FileName = { readonly user: string; readonly filePath: string };

/** A file without a record. When `whole` is true, its bytes have the hash in its name, and it can be recorded again. */
export type Orphan = {
  readonly hash: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  readonly whole: boolean;
};

/** The result of a check. Its members are those of `holdover check --json`. */
export type CheckReport = {
  readonly dataDir: string;
  readonly ledger: InspectedDatabase & Pick<LedgerRecords, 'kind'>;
  /** True when this ledger recorded these files. */
  readonly belongs: boolean;
  /** `elsewhere` when Redis has the secret. */
  readonly secret: 'ok' | 'absent' | 'damaged' | 'elsewhere';
  readonly unfinishedRestore: boolean;
  /** `null` when the ledger cannot be read. */
  readonly recorded: { readonly files: number; readonly bytes: number } | null;
  readonly trouble: readonly DamagedFile[];
  readonly orphans: readonly Orphan[];
};

export type CheckOptions = Pick<OpenedData, 'dataDir' | 'ledger' | 'blobs' | 'belongs'> & {
  /** True while a server runs. It writes a file shortly before it records it, so recent files are no orphans. */
  readonly inUse: boolean;
  readonly now: () => number;
  readonly progress: StartProgress;
};

const MAX_CONCURRENT = 4;
/** The age up to which a running server may still record a file. */
const RECENT_MS = 60_000;

/** Checks all files against the records. Changes nothing; a server may run meanwhile. */
export async function check(options: CheckOptions): Promise<CheckReport> {
  const { dataDir, ledger } = options;
  const { state, errors } = ledger.inspect();
  const common = {
    dataDir,
    ledger: { kind: ledger.kind, state, errors },
    belongs: state !== 'ok' || (await options.belongs()),
    secret: ledger.kind === 'redis' ? ('elsewhere' as const) : secretIn(dataDir),
    unfinishedRestore: existsSync(join(dataDir, UNFINISHED_RESTORE)),
  };
  // When the records cannot be read, every file would seem to have no record.
  if (state === 'damaged') return { ...common, recorded: null, trouble: [], orphans: [] };
  const list = (): Promise<RecordedFiles> =>
    state === 'ok' ? filesOnRecord(ledger) : Promise.resolve(new Map());
  return { ...common, ...(await compare(options, list)) };
}

/** Returns true when the report shows no problem. */
export function isSound(report: CheckReport): boolean {
  const { ledger, belongs, secret, unfinishedRestore, trouble, orphans } = report;
  const hasSecret = secret === 'ok' || secret === 'elsewhere';
  const isWhole = ledger.state === 'ok' && belongs && hasSecret && !unfinishedRestore;
  return isWhole && trouble.length === 0 && orphans.length === 0;
}

type RecordedFile = {
  readonly hash: string;
  readonly sizeBytes: number;
  readonly names: FileName[];
};

/** The files on record by their hash. */
type RecordedFiles = ReadonlyMap<string, RecordedFile>;

async function filesOnRecord(ledger: LedgerRecords): Promise<RecordedFiles> {
  const files = new Map<string, RecordedFile>();
  for await (const record of ledger.records(['assets'])) {
    if (record.kind !== 'assets') continue;
    const { hash, sizeBytes, user, filePath } = record.row;
    const file = files.get(hash) ?? { hash, sizeBytes, names: [] };
    file.names.push({ user, filePath });
    files.set(hash, file);
  }
  return files;
}

async function compare(
  { blobs, inUse, now, progress }: CheckOptions,
  list: () => Promise<RecordedFiles>,
): Promise<Pick<CheckReport, 'recorded' | 'trouble' | 'orphans'>> {
  const recorded = await list();
  const onRecord = [...recorded.values()];
  const unrecorded: StoredBlob[] = [];
  const createdBeforeMs = inUse ? now() - RECENT_MS : Infinity;
  for await (const blob of blobs.list())
    if (!recorded.has(blob.hash) && blob.placedAtMs <= createdBeforeMs) unrecorded.push(blob);
  const faults = new Map<string, DamagedFile['why'] | undefined>();
  const onFile = progress(totalOf([...onRecord, ...unrecorded]));
  await forEachConcurrently(
    MAX_CONCURRENT,
    [...onRecord, ...unrecorded],
    async ({ hash, sizeBytes }) => {
      faults.set(hash, await inspectBlob(blobs, hash));
      onFile(sizeBytes);
    },
  );
  // A server that runs may have removed and recorded files since the first list.
  const after = await list();
  return {
    recorded: totalOf(onRecord),
    trouble: onRecord.flatMap(({ hash }) => {
      const [why, names] = [faults.get(hash), after.get(hash)?.names];
      return why && names ? [{ hash, path: blobPath(hash), why, names }] : [];
    }),
    orphans: unrecorded
      .filter(({ hash }) => !after.has(hash) && faults.get(hash) !== 'missing')
      .map((blob) => orphanOf(blob, faults.get(blob.hash)))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  };
}

function orphanOf(
  { hash, sizeBytes, modifiedAtMs }: StoredBlob,
  fault: DamagedFile['why'] | undefined,
): Orphan {
  const file = { hash, path: blobPath(hash), sizeBytes, modifiedAtMs: Math.round(modifiedAtMs) };
  return { ...file, whole: fault === undefined };
}

async function inspectBlob(blobs: Blobs, hash: string): Promise<DamagedFile['why'] | undefined> {
  const hasher = createHasher();
  try {
    const stream = await blobs.open(hash);
    if (stream === undefined) return 'missing';
    for await (const chunk of stream as AsyncIterable<Buffer>) hasher.update(chunk);
    return hasher.digest() === hash ? undefined : 'damaged';
  } catch (error) {
    // The state of files is unknown while the bucket cannot be reached.
    if (isStorageUnavailable(error)) throw error;
    return error instanceof WrongBytes ? 'damaged' : 'unreadable';
  } finally {
    hasher.discard();
  }
}

function secretIn(dataDir: string): CheckReport['secret'] {
  const stats = statSync(join(dataDir, 'secret.key'), { throwIfNoEntry: false });
  if (stats === undefined) return 'absent';
  return stats.size === SECRET_BYTES ? 'ok' : 'damaged';
}
