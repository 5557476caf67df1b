import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { posix, join } from 'node:path';
import { reached } from '../../lib/crash-point.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { importedAsset } from '../../engine/imported-asset.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { contentTypeFor } from '../../files/store-file.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { FileCopier } from './copy.ts';
import { type FoundFile, type Scan, scan } from './scan.ts';
import type { Flags } from '../../config/flags.ts';
import { MEBIBYTE } from '../../config/parse-values.ts';
import { safeName } from '../../files/safe-name.ts';
import { sizeOf } from '../progress.ts';

/** A file in `input` or `output` of the v1 server. */
type FileToImport = FoundFile & { readonly type: 'input' | 'output' };

/** The outcome of importing the files. */
export type FilesImportResult = Omit<Scan, 'found'> & {
  files: number;
  bytes: number;
  /** The number of files that an earlier import took, or that were uploaded. */
  known: number;
};

type FilesImportOptions = {
  readonly ledger: Ledger;
  readonly blobs: Blobs;
  readonly copy: FileCopier;
  readonly user: string;
  readonly now: () => number;
  readonly onFile: (file: FoundFile) => void;
};

/** Several files at once, because each waits for a sync to the disk. */
const MAX_CONCURRENT = 8;
/** The size of a batch, whose files are recorded together. After a kill at most one batch is copied again. */
const BATCH = { files: 64, bytes: 256 * 1024 * 1024 } as const;

/** Imports files into the ledger, each completely or not at all. Does not read files again that the ledger has. */
export async function importFiles(
  options: FilesImportOptions,
  { found, leftOut, failed }: FilesToImport,
): Promise<FilesImportResult> {
  const result: FilesImportResult = { files: 0, bytes: 0, known: 0, leftOut, failed };
  for (const batch of batchesOf(found)) {
    const copies: Copy[] = [];
    await forEachConcurrently(MAX_CONCURRENT, batch, async (file) => {
      const copy = await importBytes(options, file, result);
      if (copy) copies.push(copy);
      options.onFile(file);
    });
    const recorded = await record(options, copies, result);
    result.files += recorded.length;
    result.bytes += sizeOf(recorded.map(({ file }) => file));
    reached('import-recorded');
  }
  return result;
}

function* batchesOf(files: readonly FileToImport[]): Generator<readonly FileToImport[]> {
  let batch: FileToImport[] = [];
  for (const file of files) {
    batch.push(file);
    if (batch.length < BATCH.files && sizeOf(batch) < BATCH.bytes) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** A file whose bytes are stored, but not recorded yet. */
type Copy = { readonly file: FileToImport; readonly copy: SpooledFile };

function nameOf({ type, subfolder, filename }: FileToImport): string {
  return posix.join(type, subfolder, filename);
}

/**
 * Stores the bytes of a file. Returns the copy to record; `undefined` when the file is known, left out or unreadable.
 */
async function importBytes(
  { ledger, blobs, copy, user }: FilesImportOptions,
  file: FileToImport,
  result: FilesImportResult,
): Promise<Copy | undefined> {
  const existing = await ledger.files.get(user, file);
  const { sizeBytes, modifiedAtMs } = file;
  if (existing?.sizeBytes === sizeBytes && existing.modifiedAtMs === modifiedAtMs)
    return void result.known++;
  const copied = await copy(file);
  if (!copied.ok) return void result.failed.push({ name: nameOf(file), why: copied.why });
  if (existing === undefined) {
    await blobs.moveIntoPlace(copied.file);
    reached('import-bytes');
    return { file, copy: copied.file };
  }
  // The name keeps its file.
  await rm(copied.file.path, { force: true });
  if (existing.hash === copied.file.hash) result.known++;
  else result.leftOut.push({ name: nameOf(file), why: NAME_TAKEN });
  return undefined;
}

const NAME_TAKEN = 'the name means another file here';

/**
 * Records copies and returns those that got their names. A server may have given a name to another file meanwhile.
 *
 * All writes begin in the same turn of the event loop, so SQLite makes one transaction of them. In Redis a kill may
 * leave a record without a name; a later sweep may remove it.
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
  const contentType = contentTypeFor(filename);
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

/** The files of `input` and `output` to import, and those that are left out. */
export type FilesToImport = Omit<Scan, 'found'> & { readonly found: readonly FileToImport[] };

/** Finds the files of `input` and `output` of a v1 server that can be imported. */
export async function scanFiles(
  source: string,
  { maxUploadSize }: Pick<Flags, 'maxUploadSize'>,
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
