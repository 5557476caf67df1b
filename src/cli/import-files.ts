import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { posix } from 'node:path';
import type { Blobs } from '../engine/blobs.ts';
import { importedAsset } from '../engine/imported.ts';
import type { FileRow, Ledger } from '../ledger/ledger.ts';
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
  readonly blobs: Pick<Blobs, 'adopt'>;
  readonly copy: Copier;
  readonly user: string;
  readonly now: () => number;
  readonly onFile: (file: Found) => void;
  /** Tests let the process die there. */
  readonly reached: (moment: string) => void;
};

/** The disk is told to keep each of them: while it does, others are read. */
const AT_ONCE = 8;

/** Takes files into the ledger, each whole or not at all; those it has are not read again. */
export async function importFiles(deps: Deps, files: readonly FileToImport[]): Promise<Tally> {
  const tally: Tally = { files: 0, bytes: 0, known: 0, leftOut: [], failed: [] };
  const left = [...files].toReversed();
  const lane = async (): Promise<void> => {
    for (let file = left.pop(); file; file = left.pop()) {
      await importOne(deps, file, tally);
      deps.onFile(file);
    }
  };
  const lanes = Array.from({ length: AT_ONCE }, () =>
    // One that cannot go on stops them all; what the others have begun is ended.
    lane().finally(() => (left.length = 0)),
  );
  for (const end of await Promise.allSettled(lanes)) {
    if (end.status === 'rejected') throw end.reason;
  }
  return tally;
}

/** Whether an earlier import, or an upload of the very same file, has brought it. */
export function isSameFile(row: FileRow | undefined, found: Found): boolean {
  return row?.sizeBytes === found.sizeBytes && row.modifiedAtMs === found.modifiedAtMs;
}

async function importOne(deps: Deps, file: FileToImport, tally: Tally): Promise<void> {
  const held = await deps.ledger.files.get(deps.user, file);
  if (isSameFile(held, file)) return void tally.known++;
  const name = posix.join(file.type, file.subfolder, file.filename);
  try {
    const copied = await deps.copy(file);
    if (!copied.ok) return void tally.failed.push({ name, why: copied.why });
    if (held) return await compare({ held, name, file: copied.file }, tally);
    await keep(deps, file, copied.file);
    tally.files++;
    tally.bytes += file.sizeBytes;
    deps.reached(`import-file-${tally.files}`);
  } catch (error) {
    if (!isTroubleWith(file, error)) throw error;
    tally.failed.push({ name, why: reasonOf(error) });
  }
}

type Twin = { readonly held: FileRow; readonly name: string; readonly file: SpooledFile };

/** What a client was told under this name stays what it is. */
async function compare({ held, name, file }: Twin, tally: Tally): Promise<void> {
  await rm(file.path, { force: true });
  if (held.hash === file.hash) tally.known++;
  else tally.leftOut.push({ name, why: 'the name means another file here' });
}

/** The two records are one transaction: both writes begin in the same turn of the event loop. */
async function keep(deps: Deps, file: FileToImport, copy: SpooledFile): Promise<void> {
  const { ledger, blobs, user, now, reached } = deps;
  const { type, subfolder, filename, modifiedAtMs } = file;
  const { hash, sizeBytes } = copy;
  await blobs.adopt(copy);
  reached('import-bytes');
  const contentType = contentTypeOf(filename) ?? 'application/octet-stream';
  const same = { user, hash, sizeBytes, contentType };
  const id = randomUUID();
  const filePath = posix.join(type, subfolder, filename);
  const asset = importedAsset({ ...same, id, filePath, createdAtMs: now() });
  await Promise.all([
    ledger.assets.insert(asset),
    ledger.files.put({ ...same, type, subfolder, filename, assetId: id, modifiedAtMs }),
  ]);
}
