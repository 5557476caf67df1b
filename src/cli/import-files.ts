import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { posix } from 'node:path';
import { reached } from '../crash-point.ts';
import type { Blobs } from '../engine/blobs.ts';
import { importedAsset } from '../engine/imported.ts';
import type { FileRow, Ledger } from '../ledger/ledger.ts';
import { inLanes } from '../lib/lanes.ts';
import { contentTypeOf } from '../v1/served-as.ts';
import type { SpooledFile } from '../wire/jobs.ts';
import type { Copier } from './import-copy.ts';
import { type Found, type LeftOut, isTroubleWith, reasonOf } from './import-scan.ts';

/** A file of v1's `input` or `output`, and what v1 clients call it. */
export type FileToImport = Found & { readonly type: 'input' | 'output' };

/** What became of the files. */
export type Tally = {
  files: number;
  bytes: number;
  /** Taken over by an earlier import. */
  known: number;
  readonly leftOut: LeftOut[];
  readonly failed: LeftOut[];
};

type Deps = {
  readonly ledger: Pick<Ledger, 'assets' | 'files'>;
  readonly blobs: Pick<Blobs, 'adopt' | 'recorded'>;
  readonly copy: Copier;
  readonly user: string;
  readonly now: () => number;
  readonly onFile: (file: Found) => void;
};

/** The disk is told to keep each of them: while it does, others are read. */
const AT_ONCE = 8;
/** Recorded together: what a kill costs is to copy so much again. */
const BATCH = { files: 64, bytes: 256 * 1024 * 1024 } as const;

/** Takes files into the ledger, each whole or not at all; those it has are not read again. */
export async function importFiles(deps: Deps, files: readonly FileToImport[]): Promise<Tally> {
  const tally: Tally = { files: 0, bytes: 0, known: 0, leftOut: [], failed: [] };
  for (const batch of batchesOf(files)) {
    const copies: Copy[] = [];
    await inLanes(AT_ONCE, batch, async (file) => {
      const copy = await importBytes(deps, file, tally);
      if (copy) copies.push(copy);
      deps.onFile(file);
    });
    await record(deps, copies);
    tally.files += copies.length;
    tally.bytes += bytesOf(copies.map(({ file }) => file));
    reached('import-recorded');
  }
  return tally;
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

/** Whether an earlier import, or an upload of the very same file, has brought it. */
export function isSameFile(row: FileRow | undefined, found: Found): boolean {
  return row?.sizeBytes === found.sizeBytes && row.modifiedAtMs === found.modifiedAtMs;
}

/** Bytes that have their place, and no record yet. */
type Copy = { readonly file: FileToImport; readonly copy: SpooledFile };

/** The bytes of a file that is new here. */
async function importBytes(
  { ledger, blobs, copy, user }: Deps,
  file: FileToImport,
  tally: Tally,
): Promise<Copy | undefined> {
  const held = await ledger.files.get(user, file);
  const name = posix.join(file.type, file.subfolder, file.filename);
  try {
    const copied = isSameFile(held, file) ? KNOWN : await copy(file);
    if (copied === KNOWN) tally.known++;
    else if (!copied.ok) tally.failed.push({ name, why: copied.why });
    else if (held) await compare({ held, name, file: copied.file }, tally);
    else {
      await blobs.adopt(copied.file);
      reached('import-bytes');
      return { file, copy: copied.file };
    }
  } catch (error) {
    if (!isTroubleWith(file, error)) throw error;
    tally.failed.push({ name, why: reasonOf(error) });
  }
  return undefined;
}

const KNOWN = 'known';

type Twin = { readonly held: FileRow; readonly name: string; readonly file: SpooledFile };

/** What a client was told under this name stays what it is. */
async function compare({ held, name, file }: Twin, tally: Tally): Promise<void> {
  await rm(file.path, { force: true });
  if (held.hash === file.hash) tally.known++;
  else tally.leftOut.push({ name, why: 'the name means another file here' });
}

/**
 * All writes begin in the same turn of the event loop: one transaction in a database. In a shared
 * ledger a kill may leave a record without a name, which the next sweep may take.
 */
async function record({ ledger, blobs, user, now }: Deps, copies: readonly Copy[]): Promise<void> {
  const writes = copies.flatMap(({ file, copy }) => {
    const { type, subfolder, filename, modifiedAtMs } = file;
    const { hash, sizeBytes } = copy;
    const contentType = contentTypeOf(filename) ?? 'application/octet-stream';
    const same = { user, hash, sizeBytes, contentType };
    const id = randomUUID();
    const filePath = posix.join(type, subfolder, filename);
    return [
      ledger.assets.insert(importedAsset({ ...same, id, filePath, createdAtMs: now() })),
      ledger.files.put({ ...same, type, subfolder, filename, assetId: id, modifiedAtMs }),
    ];
  });
  await Promise.all(writes);
  await Promise.all(copies.map(({ copy }) => blobs.recorded(copy.hash)));
}
