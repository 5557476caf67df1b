import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { posix } from 'node:path';
import { reached } from '../../lib/crash-point.ts';
import type { Blobs } from '../../upstreams/blobs.ts';
import { importedAsset } from '../../upstreams/imported-asset.ts';
import type { FileRow, Ledger } from '../../ledger/ledger.ts';
import { forEachConcurrently } from '../../lib/for-each-concurrently.ts';
import { contentTypeOf } from '../../http/file-headers.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import type { FileCopier } from './copy.ts';
import { type FoundFile, type LeftOut, isErrorOf, reasonOf } from './scan.ts';

/** A file of v1's `input` or `output`, and what v1 clients call it. */
export type FileToImport = FoundFile & { readonly type: 'input' | 'output' };

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
    await record(options, copies);
    result.files += copies.length;
    result.bytes += bytesOf(copies.map(({ file }) => file));
    reached('import-recorded');
  }
  return result;
}

export function bytesOf(files: readonly { readonly sizeBytes: number }[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

function* batchesOf(files: readonly FileToImport[]): Generator<readonly FileToImport[]> {
  let batch: FileToImport[] = [];
  for (const file of files) {
    batch.push(file);
    if (batch.length < BATCH.files && bytesOf(batch) < BATCH.bytes) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** True when the row is this file: imported earlier, or uploaded. */
export function isSameFile(row: FileRow | undefined, found: FoundFile): boolean {
  return row?.sizeBytes === found.sizeBytes && row.modifiedAtMs === found.modifiedAtMs;
}

/** Bytes that have their place, and no record yet. */
type Copy = { readonly file: FileToImport; readonly copy: SpooledFile };

/** The bytes of a file that is new here. */
async function importBytes(
  { ledger, blobs, copy, user }: FilesImportOptions,
  file: FileToImport,
  result: FilesImportResult,
): Promise<Copy | undefined> {
  const existing = await ledger.files.get(user, file);
  const name = posix.join(file.type, file.subfolder, file.filename);
  try {
    const copied = isSameFile(existing, file) ? ALREADY_HERE : await copy(file);
    if (copied === ALREADY_HERE) result.known++;
    else if (!copied.ok) result.failed.push({ name, why: copied.why });
    else if (existing) await compareExisting({ existing, name, file: copied.file }, result);
    else {
      await blobs.moveIntoPlace(copied.file);
      reached('import-bytes');
      return { file, copy: copied.file };
    }
  } catch (error) {
    if (!isErrorOf(file, error)) throw error;
    result.failed.push({ name, why: reasonOf(error) });
  }
  return undefined;
}

const ALREADY_HERE = 'known';

type NamedFile = { readonly existing: FileRow; readonly name: string; readonly file: SpooledFile };

/** A name keeps the file it already has. */
async function compareExisting(
  { existing, name, file }: NamedFile,
  result: FilesImportResult,
): Promise<void> {
  await rm(file.path, { force: true });
  if (existing.hash === file.hash) result.known++;
  else result.leftOut.push({ name, why: 'the name means another file here' });
}

/**
 * All writes begin in the same turn of the event loop: one transaction in a database. In a shared
 * ledger a kill may leave a record without a name, which the next sweep may take.
 */
async function record(
  { ledger, blobs, user, now }: FilesImportOptions,
  copies: readonly Copy[],
): Promise<void> {
  const writes = copies.flatMap(({ file, copy }) => {
    const { type, subfolder, filename, modifiedAtMs } = file;
    const { hash, sizeBytes } = copy;
    const contentType = contentTypeOf(filename) ?? 'application/octet-stream';
    const commonFields = { user, hash, sizeBytes, contentType };
    const id = randomUUID();
    const filePath = posix.join(type, subfolder, filename);
    return [
      ledger.assets.insert(importedAsset({ ...commonFields, id, filePath, createdAtMs: now() })),
      ledger.files.put({ ...commonFields, type, subfolder, filename, assetId: id, modifiedAtMs }),
    ];
  });
  await Promise.all(writes);
  await Promise.all(copies.map(({ copy }) => blobs.markRecorded(copy.hash)));
}
