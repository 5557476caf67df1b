import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET_BYTES, UNFINISHED_RESTORE } from '../../data-folder/data-dir.ts';
import type { DatabaseState, RecordedBlob } from '../../ledger/sqlite/inspect.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { createHasher } from '../../lib/hash.ts';
import { isStorageUnavailable } from '../../lib/storage-errors.ts';
import type { Blobs, StoredBlob } from '../../upstreams/blobs.ts';
import { WrongBytes } from '../../upstreams/bucket/errors.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import { blobPath } from './format.ts';
import { type RecordedFiles, isRecordedBy } from './recorded-files.ts';

/** A file on record that is missing or damaged, and the names under which clients know it. */
export type DamagedFile = {
  readonly hash: string;
  readonly path: string;
  readonly why: 'missing' | 'damaged' | 'unreadable';
  readonly names: readonly { readonly user: string; readonly filePath: string }[];
};

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
  readonly ledger: {
    readonly kind: 'sqlite' | 'redis';
    readonly state: DatabaseState;
    readonly errors: readonly string[];
  };
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

export type CheckOptions = {
  readonly dataDir: string;
  readonly blobs: Pick<Blobs, 'list' | 'open'>;
  /** The id of the ledger that recorded these files; `undefined` when it is not known. */
  readonly recordedBy: string | undefined;
  readonly recorded: RecordedFiles;
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
  const { dataDir, recorded } = options;
  const { state, errors } = recorded.inspect();
  const common = {
    dataDir,
    ledger: { kind: recorded.kind, state, errors },
    belongs: state !== 'ok' || isRecordedBy(recorded, options.recordedBy),
    secret: recorded.kind === 'redis' ? ('elsewhere' as const) : secretIn(dataDir),
    unfinishedRestore: existsSync(join(dataDir, UNFINISHED_RESTORE)),
  };
  // When the records cannot be read, every file would seem to have no record.
  if (state === 'damaged') return { ...common, recorded: null, trouble: [], orphans: [] };
  const named = state === 'ok' ? await recorded.list() : [];
  const found = await compare(options, named, state);
  return { ...common, recorded: totalOf(named), ...found };
}

/** Returns true when the report shows no problem. */
export function isSound(report: CheckReport): boolean {
  const { ledger, belongs, secret, unfinishedRestore, trouble, orphans } = report;
  const hasSecret = secret === 'ok' || secret === 'elsewhere';
  const isWhole = ledger.state === 'ok' && belongs && hasSecret && !unfinishedRestore;
  return isWhole && trouble.length === 0 && orphans.length === 0;
}

async function compare(
  options: CheckOptions,
  named: readonly RecordedBlob[],
  state: DatabaseState,
): Promise<Pick<CheckReport, 'trouble' | 'orphans'>> {
  const { blobs, recorded, inUse, now, progress } = options;
  const onRecord = new Set(named.map(({ hash }) => hash));
  const unrecorded: StoredBlob[] = [];
  for await (const blob of blobs.list()) if (!onRecord.has(blob.hash)) unrecorded.push(blob);
  const { files, bytes } = totalOf(named);
  const reportProgress = progress({ files: files + unrecorded.length, bytes });
  const damage = new Map<string, DamagedFile['why']>();
  await forEachConcurrently(MAX_CONCURRENT, named, async ({ hash, sizeBytes }) => {
    const why = await inspectBlob(blobs, hash);
    if (why) damage.set(hash, why);
    reportProgress(sizeBytes);
  });
  const orphans: Orphan[] = [];
  const createdBeforeMs = inUse ? now() - RECENT_MS : Infinity;
  await forEachConcurrently(MAX_CONCURRENT, unrecorded, async (blob) => {
    const isRecent = blob.placedAtMs > createdBeforeMs;
    const orphan = isRecent ? undefined : await inspectOrphan(blobs, blob);
    if (orphan) orphans.push(orphan);
    reportProgress(0);
  });
  // A server that runs may have removed and recorded files since the first list.
  const after = state === 'ok' ? new Set((await recorded.list()).map(({ hash }) => hash)) : null;
  const stillRecorded = [...damage].filter(([hash]) => after?.has(hash));
  return {
    trouble: await withNames(recorded, stillRecorded),
    orphans: orphans
      .filter(({ hash }) => !after?.has(hash))
      .toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  };
}

async function inspectBlob(
  blobs: Pick<Blobs, 'open'>,
  hash: string,
): Promise<DamagedFile['why'] | undefined> {
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

async function inspectOrphan(
  blobs: Pick<Blobs, 'open'>,
  { hash, sizeBytes, modifiedAtMs }: StoredBlob,
): Promise<Orphan | undefined> {
  const why = await inspectBlob(blobs, hash);
  if (why === 'missing') return undefined;
  const file = { hash, path: blobPath(hash), sizeBytes, modifiedAtMs: Math.round(modifiedAtMs) };
  return { ...file, whole: why === undefined };
}

async function withNames(
  recorded: RecordedFiles,
  damage: readonly (readonly [string, DamagedFile['why']])[],
): Promise<readonly DamagedFile[]> {
  const owners = await recorded.owners(damage.map(([hash]) => hash));
  return damage.map(([hash, why]) => ({
    hash,
    path: blobPath(hash),
    why,
    names: owners
      .filter((owner) => owner.hash === hash)
      .map(({ user, filePath }) => ({ user, filePath })),
  }));
}

function secretIn(dataDir: string): CheckReport['secret'] {
  const stats = statSync(join(dataDir, 'secret.key'), { throwIfNoEntry: false });
  if (stats === undefined) return 'absent';
  return stats.size === SECRET_BYTES ? 'ok' : 'damaged';
}
