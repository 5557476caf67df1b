import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { posix, join } from 'node:path';
import { reached } from '../../lib/crash-point.ts';
import type { Blobs } from '../../upstreams/blobs.ts';
import { importedAsset } from '../../upstreams/imported-asset.ts';
import type { FileRow, Ledger } from '../../ledger/ledger.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { contentTypeOf } from '../../http/file-headers.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { FileCopier } from './copy.ts';
import { type FoundFile, type LeftOut, type Scan, scan } from './scan.ts';
import { InvalidSetting } from '../../config/invalid-setting.ts';
import type { Flags } from '../../config/flags.ts';
import { MEBIBYTE } from '../../config/parse-values.ts';
import { safeName } from '../../files/safe-name.ts';
import { megabytes } from '../printable-name.ts';
import { totalOf } from '../progress.ts';

/** A file of v1's `input` or `output`, and what v1 clients call it. */
type FileToImport = FoundFile & { readonly type: 'input' | 'output' };

/** The outcome of importing the files. */
export type FilesImportResult = {
  files: number;
  bytes: number;
  /** Taken over by an earlier import. */
  known: number;
  readonly leftOut: LeftOut[];
  readonly failed: LeftOut[];
};

type FilesImportOptions = {
  readonly ledger: Pick<Ledger, 'assets' | 'files'>;
  readonly blobs: Pick<Blobs, 'moveIntoPlace' | 'markRecorded'>;
  readonly copy: FileCopier;
  readonly user: string;
  readonly now: () => number;
  readonly onFile: (file: FoundFile) => void;
};

/** Each file is fsynced; meanwhile others are read. */
const MAX_CONCURRENT = 8;
/** Recorded together: what a kill costs is to copy so much again. */
const BATCH = { files: 64, bytes: 256 * 1024 * 1024 } as const;

/** Takes files into the ledger, each whole or not at all; those it has are not read again. */
export async function importFiles(
  options: FilesImportOptions,
  files: readonly FileToImport[],
): Promise<FilesImportResult> {
  const result: FilesImportResult = { files: 0, bytes: 0, known: 0, leftOut: [], failed: [] };
  for (const batch of batchesOf(files)) {
    const copies: Copy[] = [];
    await forEachConcurrently(MAX_CONCURRENT, batch, async (file) => {
      const copy = await importBytes(options, file, result);
      if (copy) copies.push(copy);
      options.onFile(file);
    });
    const recorded = await record(options, copies, result);
    const { files: count, bytes } = totalOf(recorded.map(({ file }) => file));
    result.files += count;
    result.bytes += bytes;
    reached('import-recorded');
  }
  return result;
}

function* batchesOf(files: readonly FileToImport[]): Generator<readonly FileToImport[]> {
  let batch: FileToImport[] = [];
  for (const file of files) {
    batch.push(file);
    if (batch.length < BATCH.files && totalOf(batch).bytes < BATCH.bytes) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** True when the row is this file: imported earlier, or uploaded. */
function isSameFile(row: FileRow | undefined, found: FoundFile): boolean {
  return row?.sizeBytes === found.sizeBytes && row.modifiedAtMs === found.modifiedAtMs;
}

/** Bytes that have their place, and no record yet. */
type Copy = { readonly file: FileToImport; readonly copy: SpooledFile };

function nameOf({ type, subfolder, filename }: FileToImport): string {
  return posix.join(type, subfolder, filename);
}

/** The bytes of a file that is new here. */
async function importBytes(
  { ledger, blobs, copy, user }: FilesImportOptions,
  file: FileToImport,
  result: FilesImportResult,
): Promise<Copy | undefined> {
  const existing = await ledger.files.get(user, file);
  const name = nameOf(file);
  const copied = isSameFile(existing, file) ? ALREADY_HERE : await copy(file);
  if (copied === ALREADY_HERE) result.known++;
  else if (!copied.ok) result.failed.push({ name, why: copied.why });
  else if (existing) await compareExisting({ existing, name, file: copied.file }, result);
  else {
    await blobs.moveIntoPlace(copied.file);
    reached('import-bytes');
    return { file, copy: copied.file };
  }
  return undefined;
}

const ALREADY_HERE = 'known';
const NAME_TAKEN = 'the name means another file here';

type NamedFile = { readonly existing: FileRow; readonly name: string; readonly file: SpooledFile };

/** A name keeps the file it already has. */
async function compareExisting(
  { existing, name, file }: NamedFile,
  result: FilesImportResult,
): Promise<void> {
  await rm(file.path, { force: true });
  if (existing.hash === file.hash) result.known++;
  else result.leftOut.push({ name, why: NAME_TAKEN });
}

/**
 * All writes begin in the same turn of the event loop: one transaction in a database. In a shared
 * ledger a kill may leave a record without a name, which the next sweep may take. Returns those that
 * have their names: a server may have given a name to another file since.
 */
async function record(
  options: FilesImportOptions,
  copies: readonly Copy[],
  { leftOut }: FilesImportResult,
): Promise<readonly Copy[]> {
  const areNamed = await Promise.all(copies.map((copy) => recordOne(options, copy)));
  const recorded = copies.filter((_, at) => areNamed[at]);
  await Promise.all(recorded.map(({ copy }) => options.blobs.markRecorded(copy.hash)));
  for (const [at, { file }] of copies.entries())
    if (areNamed[at] !== true) leftOut.push({ name: nameOf(file), why: NAME_TAKEN });
  return recorded;
}

async function recordOne(
  { ledger, user, now }: FilesImportOptions,
  { file, copy }: Copy,
): Promise<boolean> {
  const { type, subfolder, filename, modifiedAtMs } = file;
  const { hash, sizeBytes } = copy;
  const contentType = contentTypeOf(filename) ?? 'application/octet-stream';
  const commonFields = { user, hash, sizeBytes, contentType };
  const id = randomUUID();
  const filePath = nameOf(file);
  const [, isNamed] = await Promise.all([
    ledger.assets.insert(importedAsset({ ...commonFields, id, filePath, createdAtMs: now() })),
    ledger.files.claim({ ...commonFields, type, subfolder, filename, assetId: id, modifiedAtMs }),
  ]);
  if (!isNamed) await ledger.assets.remove(id);
  return isNamed;
}

/** How much is taken. */
export type ImportLimits = Pick<Flags, 'maxUploadSize' | 'diskBudget' | 'userdataQuota'>;

/** The share of the budget to leave free; with less, new results soon remove each other. */
const MIN_FREE_SHARE = 0.2;

/** Files of `input` and `output`, and what is to be said of the rest. */
export type FilesToImport = Omit<Scan, 'found'> & { readonly found: readonly FileToImport[] };

export async function scanFiles(
  source: string,
  { maxUploadSize }: ImportLimits,
): Promise<FilesToImport> {
  const isKeptName = (name: string): boolean => safeName(name) !== undefined;
  const rules = { maxBytes: Math.round(maxUploadSize * MEBIBYTE), isKeptName };
  const input = await scan(join(source, 'input'), 'input', rules);
  const output = await scan(join(source, 'output'), 'output', rules);
  return {
    found: [
      ...input.found.map((file) => ({ ...file, type: 'input' as const })),
      ...output.found.map((file) => ({ ...file, type: 'output' as const })),
    ],
    leftOut: [...input.leftOut, ...output.leftOut],
    failed: [...input.failed, ...output.failed],
  };
}

/** Imported files are never removed automatically, so all of them must fit and leave some space. */
export async function budgetWarnings(
  {
    settings,
    ledger,
    user,
  }: { readonly settings: ImportLimits; readonly ledger: Ledger; readonly user: string },
  files: readonly FileToImport[],
): Promise<readonly string[]> {
  let neededBytes = await ledger.assets.totalBytes();
  for (const file of files) {
    const existing = await ledger.files.get(user, file);
    if (!isSameFile(existing, file)) neededBytes += file.sizeBytes;
  }
  const budgetBytes = settings.diskBudget * MEBIBYTE;
  const advisedMegabytes = Math.ceil(neededBytes / (1 - MIN_FREE_SHARE) / MEBIBYTE);
  if (neededBytes > budgetBytes) {
    throw new InvalidSetting(
      `with these files ${megabytes(neededBytes)} would be stored, and --disk-budget is ` +
        `${settings.diskBudget} MB: give it at least ${advisedMegabytes} here, and the server as well`,
    );
  }
  if (neededBytes <= budgetBytes * (1 - MIN_FREE_SHARE)) return [];
  return [
    `Of --disk-budget (${settings.diskBudget} MB) little is left for new results, which go first ` +
      `when it is used up: start the server with at least --disk-budget ${advisedMegabytes}.`,
  ];
}

/** Beyond its quota a user could save nothing more. */
export function refuseQuota({ found }: Scan, { userdataQuota }: ImportLimits): void {
  const { bytes } = totalOf(found);
  if (bytes <= userdataQuota * MEBIBYTE) return;
  throw new InvalidSetting(
    `the user's files are ${megabytes(bytes)}, and --userdata-quota is ${userdataQuota} MB: ` +
      'give it more, here and for the server',
  );
}
