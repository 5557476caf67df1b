import { randomUUID } from 'node:crypto';
import { posix } from 'node:path';
import { readAtMost } from '../../lib/read-at-most.ts';
import type { Output } from '../../protocol/v2.ts';
import type { Blobs } from '../../upstreams/blobs.ts';
import { importedAsset } from '../../upstreams/imported-asset.ts';
import type { AssetRow, FileRow, Ledger } from '../../ledger/ledger.ts';
import type { RememberedName } from '../../ledger/sqlite/inspect.ts';
import type { Orphan } from './check.ts';

/** The record that a file without one was given. */
export type RestoredRecord = {
  readonly hash: string;
  readonly user: string;
  readonly filePath: string;
  /** `remembered` when the former id and name were known; `new name` when they were lost. */
  readonly as: 'remembered' | 'new name';
};

type RecordOrphansOptions = {
  readonly blobs: Pick<Blobs, 'open'>;
  readonly ledger: Pick<Ledger, 'assets' | 'files' | 'jobs'>;
  /** The user who gets the files whose former owner is not known. */
  readonly user: string;
  readonly now: () => number;
};

/**
 * Known first bytes of files: hex digits, their offset in bytes, extension, content type. Used when the name is lost.
 */
const SIGNATURES: readonly (readonly [string, number, string, string])[] = [
  ['89504e470d0a1a0a', 0, '.png', 'image/png'],
  ['ffd8ff', 0, '.jpg', 'image/jpeg'],
  ['47494638', 0, '.gif', 'image/gif'],
  ['57454250', 8, '.webp', 'image/webp'],
  ['57415645', 8, '.wav', 'audio/wav'],
  ['424d', 0, '.bmp', 'image/bmp'],
  ['664c6143', 0, '.flac', 'audio/flac'],
  ['4f676753', 0, '.ogg', 'audio/ogg'],
  ['66747970', 4, '.mp4', 'video/mp4'],
  ['1a45dfa3', 0, '.webm', 'video/webm'],
];
const SIGNATURE_BYTES = 12;
const UNKNOWN = ['.bin', 'application/octet-stream'] as const;

/** Records files that have no record in the ledger, and returns the new records. Skips damaged files. */
export async function recordOrphans(
  options: RecordOrphansOptions,
  orphans: readonly Orphan[],
  remembered: readonly RememberedName[],
): Promise<readonly RestoredRecord[]> {
  const known = formerRecords(remembered);
  const restored: RestoredRecord[] = [];
  for (const orphan of orphans.filter(({ whole }) => whole)) {
    const former = known.get(orphan.hash) ?? [];
    for (const row of former) restored.push(await restoreRecord(options, orphan, row));
    if (former.length === 0) restored.push(await recordAsNew(options, orphan));
  }
  return restored;
}

type FormerRecord = Pick<AssetRow, 'id' | 'user' | 'contentType' | 'filePath' | 'jobId'> & {
  readonly hash: string;
};

/**
 * Groups the former records by hash. The first record of an asset id is used: jobs, which know more, come before v1
 * names.
 */
function formerRecords(remembered: readonly RememberedName[]): ReadonlyMap<string, FormerRecord[]> {
  const byHash = new Map<string, FormerRecord[]>();
  for (const one of remembered) {
    for (const former of one.kind === 'output' ? fromJob(one) : fromFile(one.row)) {
      const known = byHash.get(former.hash) ?? [];
      if (known.some(({ id }) => id === former.id)) continue;
      byHash.set(former.hash, [...known, former]);
    }
  }
  return byHash;
}

function fromFile({ user, type, subfolder, filename, assetId, hash, contentType }: FileRow) {
  const filePath = posix.join(type, subfolder, filename);
  return [{ id: assetId, user, hash: hash ?? '', contentType, filePath, jobId: null }];
}

function fromJob({
  user,
  outputsJson,
}: RememberedName & { kind: 'output' }): readonly FormerRecord[] {
  return (JSON.parse(outputsJson) as readonly Output[]).flatMap((output) => {
    const { id, hash, name, job_id: jobId = null, content_type: contentType } = output;
    if (hash === null || hash === undefined) return [];
    const folder = output.x_temp === true ? 'temp' : 'output';
    const filePath = posix.join(folder, output.x_subfolder ?? '', name);
    return [{ id, user, hash, contentType, filePath, jobId }];
  });
}

async function restoreRecord(
  { ledger }: RecordOrphansOptions,
  orphan: Orphan,
  former: FormerRecord,
): Promise<RestoredRecord> {
  const { hash, sizeBytes, modifiedAtMs } = orphan;
  const job = former.jobId === null ? undefined : await ledger.jobs.get(former.jobId);
  const row = { ...former, sizeBytes, createdAtMs: modifiedAtMs };
  // The output of a job that still exists is removed with the job; other files stay until a client removes them.
  await ledger.assets.insert(job ? { ...importedAsset(row), jobId: job.id } : importedAsset(row));
  return { hash, user: former.user, filePath: former.filePath, as: 'remembered' };
}

async function recordAsNew(
  { blobs, ledger, user, now }: RecordOrphansOptions,
  { hash, sizeBytes, modifiedAtMs }: Orphan,
): Promise<RestoredRecord> {
  const [extension, contentType] = sizeBytes === 0 ? UNKNOWN : await detectType(blobs, hash);
  const filename = `${hash.slice('blake3:'.length, 'blake3:'.length + 16)}${extension}`;
  const [type, subfolder] = ['output', 'recovered'] as const;
  const filePath = posix.join(type, subfolder, filename);
  const commonFields = { user, hash, sizeBytes, contentType };
  const id = randomUUID();
  await Promise.all([
    ledger.assets.insert(importedAsset({ ...commonFields, id, filePath, createdAtMs: now() })),
    ledger.files.put({ ...commonFields, type, subfolder, filename, assetId: id, modifiedAtMs }),
  ]);
  return { hash, user, filePath, as: 'new name' };
}

async function detectType(
  blobs: Pick<Blobs, 'open'>,
  hash: string,
): Promise<readonly [string, string]> {
  const stream = await blobs.open(hash, { start: 0, end: SIGNATURE_BYTES - 1 });
  const hex = stream && (await readAtMost(SIGNATURE_BYTES, stream))?.toString('hex');
  const found = SIGNATURES.find(([start, at]) => hex?.startsWith(start, at * 2));
  return found ? [found[2], found[3]] : UNKNOWN;
}
