import { randomUUID } from 'node:crypto';
import { createWriteStream, existsSync, mkdirSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { listBelow } from '../../files/folder-paths.ts';
import { packageVersion } from '../../config/version.ts';
import { lockFile } from '../../ledger/sqlite/sqlite-ledger.ts';
import { undefinedIfAbsent } from '../../lib/absent-file.ts';
import { blobPath } from '../../blobs/blob-paths.ts';
import { reached } from '../../lib/crash-point.ts';
import { syncPath } from '../../lib/durability.ts';
import { hashFile } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import type { SpooledFile } from '../../protocol/job-api.ts';
import { forEachFile } from '../progress.ts';
import {
  RECORDS_FILE,
  type BackupHeader,
  type BackupLine,
  type MissingBlob,
  isPathBelow,
  linesOf,
  writeLines,
} from './format.ts';
import type { LedgerRecords, OpenedData } from './opened-data.ts';
import { type FilesPlace, refuseNested } from './places.ts';

/** The ledger and the files that are backed up. A server may use them meanwhile. */
export type BackupSource = Pick<OpenedData, 'dataDir' | 'place'> & {
  readonly ledger: Pick<LedgerRecords, 'records'>;
  readonly identity: Pick<BackupHeader, 'ledger' | 'ledgerId' | 'folderId' | 'secret'>;
};

/** The contents of a finished backup, and the files it lacks. */
export type BackupResult = {
  records: number;
  files: number;
  readonly missing: MissingBlob[];
};

const PARTIAL_FILE = `${RECORDS_FILE}.partial`;
const OWN_NAMES = /^(records\.jsonl(\.partial)?|blobs|backup\.lock(-journal)?|lost\+found)$/;
/** The records are read again when files that they name were removed meanwhile, at most so many times. */
const MAX_PASSES = 10;

/**
 * Backs up a ledger and its files into a folder, which has one backup or none. Throws when the backup cannot be
 * finished: an earlier backup in the folder is complete until the new one takes its place.
 *
 * A server writes a file before it records it, and removes the record before the file. So the records are read first.
 * A file that was removed meanwhile is no longer on record: the records are read again, and then no longer name it.
 */
export async function backUp(source: BackupSource, folder: string): Promise<BackupResult> {
  const into = resolve(folder);
  refuseNested(into, source.dataDir);
  const names = (await undefinedIfAbsent(readdir(into))) ?? [];
  if (!names.every((name) => OWN_NAMES.test(name)))
    throw new Error(`${into} contains other files than a backup: give a folder for a backup only`);
  mkdirSync(join(into, 'blobs'), { recursive: true, mode: 0o700 });
  const lock = lockFile(join(into, 'backup'));
  try {
    const formerSecret = await secretOf(into);
    if (formerSecret !== undefined && formerSecret !== source.identity.secret)
      throw new Error(`${into} has the backup of another data folder: give a folder of its own`);
    return await writeBackup(source, into);
  } finally {
    lock.close();
  }
}

async function secretOf(folder: string): Promise<string | undefined> {
  try {
    for await (const line of linesOf(folder)) if (line.kind === 'backup') return line.secret;
  } catch {
    // The next backup takes the place of one that cannot be read.
  }
  return undefined;
}

async function writeBackup(source: BackupSource, into: string): Promise<BackupResult> {
  const kept = new Set<string>();
  let failed = new Set<string>();
  for (let pass = 1; ; pass++) {
    const result: BackupResult = { records: 0, files: 0, missing: [] };
    await writeLines(join(into, PARTIAL_FILE), linesFor(source, { into, kept, result }));
    const { missing } = result;
    const isNew = missing.some(({ hash }) => !failed.has(hash));
    failed = new Set(missing.map(({ hash }) => hash));
    if (isNew && pass < MAX_PASSES) continue;
    for await (const _line of linesOf(into, PARTIAL_FILE));
    reached('backup-listed');
    await rename(join(into, PARTIAL_FILE), join(into, RECORDS_FILE));
    await syncPath(into);
    const paths = new Set([...kept].map(blobPath));
    for (const { path, isFolder } of await listBelow(join(into, 'blobs'), { depth: 'all' }))
      if (!isFolder && !paths.has(`blobs/${path}`)) await rm(join(into, 'blobs', path));
    return result;
  }
}

type Pass = {
  readonly into: string;
  /** The hashes whose bytes the backup has. */
  readonly kept: Set<string>;
  readonly result: BackupResult;
};

async function* linesFor(
  source: BackupSource,
  { into, kept, result }: Pass,
): AsyncGenerator<BackupLine> {
  const { identity, place } = source;
  const createdAt = new Date().toISOString();
  yield { kind: 'backup', format: 1, holdover: packageVersion(), createdAt, ...identity };
  const named = new Map<string, { readonly hash: string; readonly sizeBytes: number }>();
  for await (const record of source.ledger.records()) {
    if (record.kind === 'assets') named.set(record.row.hash, record.row);
    result.records += 1;
    yield record;
  }
  reached('backup-records');
  // A client may change these files under the same name.
  for await (const { key, modifiedAtMs } of place.list('userdata/')) {
    const path = key.slice('userdata/'.length);
    if (path.endsWith('/')) continue;
    if (!isPathBelow(path)) throw new Error(`userdata has a file with an unusable name: ${path}`);
    const copy = await copyInto(into, place, key);
    if (copy === 'absent') continue;
    if (typeof copy === 'string') throw new Error(`${key} cannot be read`);
    const { hash, sizeBytes } = copy;
    kept.add(hash);
    result.files += 1;
    yield { kind: 'userFile', path, hash, sizeBytes, modifiedAtMs };
  }
  await forEachFile([...named.values()], async ({ hash }) => {
    const hasIt = kept.has(hash) || (await isIntact(join(into, blobPath(hash)), hash));
    const copy = hasIt ? 'kept' : await copyInto(into, place, blobPath(hash), hash);
    const why = copy === 'kept' || typeof copy === 'object' ? undefined : copy;
    if (why === undefined) kept.add(hash);
    else result.missing.push({ kind: 'missing', hash, why });
    reached('backup-file');
  });
  result.files += named.size - result.missing.length;
  yield* result.missing;
}

/** True when the file exists and has these bytes. */
export async function isIntact(path: string, hash: string): Promise<boolean> {
  return existsSync(path) && (await hashFile(path)).hash === hash;
}

/** Errors of the file itself, not of the disk that takes the copy. */
const UNREADABLE: readonly unknown[] = ['EIO', 'EACCES', 'EISDIR', 'ELOOP'];

type NotCopied = 'absent' | 'unreadable' | 'not the bytes of its name';

/** Copies bytes to their place in the backup, or returns the reason why not. Throws when they cannot be written. */
async function copyInto(
  into: string,
  place: FilesPlace,
  key: string,
  expectedHash?: string,
): Promise<SpooledFile | NotCopied> {
  const path = join(into, 'blobs', randomUUID());
  try {
    const bytes = await place.open(key);
    if (bytes === undefined) return 'absent';
    await pipeline(bytes, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
    const copy = { path, ...(await hashFile(path)) };
    if (expectedHash !== undefined && copy.hash !== expectedHash)
      return 'not the bytes of its name';
    await moveIntoPlace(copy, join(into, blobPath(copy.hash)));
    return copy;
  } catch (error) {
    const { code, syscall = '' } = error as NodeJS.ErrnoException;
    if (UNREADABLE.includes(code) && ['open', 'read'].includes(syscall)) return 'unreadable';
    throw error;
  } finally {
    await rm(path, { force: true });
  }
}
