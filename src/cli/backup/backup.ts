import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { packageVersion } from '../../config/version.ts';
import type { StoredRecord } from '../../ledger/records.ts';
import { forEachConcurrently } from '../../lib/concurrency.ts';
import { reached } from '../../lib/crash-point.ts';
import { syncPath } from '../../lib/durability.ts';
import { hashFile } from '../../lib/hash.ts';
import { moveIntoPlace } from '../../lib/rename-new.ts';
import { type StartProgress, totalOf } from '../progress.ts';
import { copyInto, filesBelow, refuseNested, tryLock } from './copy.ts';
import {
  RECORDS_FILE,
  type BackupHeader,
  type BackupLine,
  type MissingBlob,
  type UserFile,
  blobPath,
  headerOf,
  isPathBelow,
  linesOf,
  writeLines,
} from './format.ts';
import type { FilesPlace, SavedFile } from './places.ts';

/** The ledger and the files that are backed up. A server may use them meanwhile. */
export type BackupSource = {
  readonly identity: Pick<BackupHeader, 'ledger' | 'ledgerId' | 'folderId' | 'secret'>;
  /** Reads all records as they are now. */
  records(): AsyncIterable<StoredRecord>;
  readonly place: FilesPlace;
};

export type BackupOptions = {
  readonly dataDir: string;
  /** The folder of the backup, which has one backup or none. */
  readonly into: string;
  /** Opens the source. Throws when it cannot be backed up. */
  readonly openSource: () => Promise<BackupSource>;
  readonly now: () => number;
  readonly progress: StartProgress;
};

/** The finished backup: the number of records and files, the bytes that were copied, and what is missing. */
export type BackupResult = {
  readonly records: number;
  readonly files: number;
  readonly copied: { readonly files: number; readonly bytes: number };
  readonly missing: readonly MissingBlob[];
};

const PARTIAL_FILE = `${RECORDS_FILE}.partial`;
/** The folder for files while they are copied. */
const COPYING_FOLDER = 'copying';
const OWN_NAMES =
  /^(records\.jsonl(\.partial)?|blobs|copying|backup\.lock(-journal)?|lost\+found)$/;
const MAX_CONCURRENT = 8;
/** The records are read again when files that they name were removed meanwhile, at most so many times. */
const MAX_PASSES = 10;

/**
 * Backs up a ledger and its files. Throws when the backup cannot be finished: an earlier backup in the folder is
 * complete until the new one takes its place.
 *
 * A server writes a file before it records it, and removes the record before the file. So the records are read first.
 * A file that was removed meanwhile is no longer on record: the records are read again, and then no longer name it.
 */
export async function backUp(options: BackupOptions): Promise<BackupResult> {
  const into = resolve(options.into);
  if (!existsSync(options.dataDir)) throw new Error(`there is no data folder ${options.dataDir}`);
  refuseNested(into, options.dataDir);
  openFolder(into);
  const lock = tryLock(join(into, 'backup'));
  if (!lock) throw new Error(`another backup into ${into} is running`);
  try {
    const source = await options.openSource();
    const former = await headerOf(into);
    if (former !== undefined && former.secret !== source.identity.secret)
      throw new Error(`${into} has the backup of another data folder: give a folder of its own`);
    await rm(join(into, COPYING_FOLDER), { recursive: true, force: true });
    mkdirSync(join(into, COPYING_FOLDER), { mode: 0o700 });
    return await writeBackup({ ...options, into, source });
  } finally {
    await rm(join(into, COPYING_FOLDER), { recursive: true, force: true });
    lock.close();
  }
}

/** Makes the folder if it is absent. Throws when it contains anything other than a backup. */
function openFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).every((name) => OWN_NAMES.test(name))) return;
  throw new Error(`${folder} contains other files than a backup: give a folder for a backup only`);
}

type Opened = BackupOptions & { readonly source: BackupSource };

async function writeBackup(options: Opened): Promise<BackupResult> {
  const { into } = options;
  const blobs = createBlobCopier(options);
  let failed = new Set<string>();
  for (let pass = 1; ; pass++) {
    const content = { records: 0, userFiles: 0, missing: [] as MissingBlob[] };
    const named = new Map<string, number>();
    await writeLines(join(into, PARTIAL_FILE), linesToWrite(options, { blobs, named, content }));
    const { missing, records, userFiles } = content;
    if (pass < MAX_PASSES && missing.some(({ hash }) => !failed.has(hash))) {
      failed = new Set(missing.map(({ hash }) => hash));
      continue;
    }
    for await (const _line of linesOf(into, PARTIAL_FILE));
    reached('backup-listed');
    await rename(join(into, PARTIAL_FILE), join(into, RECORDS_FILE));
    await syncPath(into);
    await blobs.removeOthers();
    const files = named.size - missing.length + userFiles;
    return { records, files, copied: blobs.copied, missing };
  }
}

type Pass = {
  readonly blobs: ReturnType<typeof createBlobCopier>;
  /** The size of all bytes on record, by their hash. */
  readonly named: Map<string, number>;
  readonly content: { records: number; userFiles: number; missing: MissingBlob[] };
};

async function* linesToWrite(
  { source, now, progress }: Opened,
  { blobs, named, content }: Pass,
): AsyncGenerator<BackupLine> {
  const createdAt = new Date(now()).toISOString();
  const facts = { format: 1, holdover: packageVersion(), createdAt, ...source.identity } as const;
  yield { kind: 'backup', ...facts };
  for await (const record of source.records()) {
    if (record.kind === 'assets') named.set(record.row.hash, record.row.sizeBytes);
    content.records += 1;
    yield record;
  }
  reached('backup-records');
  for await (const file of source.place.saved()) {
    const line = await blobs.copySaved(file);
    if (line) content.userFiles += 1;
    if (line) yield line;
  }
  const sizes = [...named].map(([hash, sizeBytes]) => ({ hash, sizeBytes }));
  const onFile = progress(totalOf(sizes));
  await forEachConcurrently(MAX_CONCURRENT, sizes, async ({ hash, sizeBytes }) => {
    const why = await blobs.copy(hash);
    if (why !== undefined) content.missing.push({ kind: 'missing', hash, why });
    onFile(sizeBytes);
    reached('backup-file');
  });
  yield* content.missing;
}

/** Copies files into the blobs of the backup, which an earlier backup or an interrupted one may have already. */
function createBlobCopier({ into, source: { place } }: Opened) {
  const dir = join(into, COPYING_FOLDER);
  const wanted = new Set<string>();
  const copied = { files: 0, bytes: 0 };

  async function isIntact(hash: string): Promise<boolean> {
    const path = join(into, blobPath(hash));
    return existsSync(path) && (await hashFile(path)).hash === hash;
  }

  async function store(file: { path: string; hash: string; sizeBytes: number }): Promise<void> {
    const isNew = !wanted.has(file.hash) && !(await isIntact(file.hash));
    wanted.add(file.hash);
    if (!isNew) return await rm(file.path);
    await moveIntoPlace(file, join(into, blobPath(file.hash)));
    copied.files += 1;
    copied.bytes += file.sizeBytes;
  }

  return {
    copied,
    /** Copies bytes on record. Returns the reason when they cannot be copied. */
    async copy(hash: string): Promise<string | undefined> {
      if (wanted.has(hash) || (await isIntact(hash))) return void wanted.add(hash);
      const copy = await copyInto(dir, () => place.open(blobPath(hash)), hash);
      return typeof copy === 'string' ? copy : await store(copy).then(() => undefined);
    },
    /** Copies a file of a front end, which a client may change under the same name. */
    async copySaved({ path, modifiedAtMs }: SavedFile): Promise<UserFile | undefined> {
      if (!isPathBelow(path)) throw new Error(`userdata has a file with an unusable name: ${path}`);
      const copy = await copyInto(dir, () => place.open(`userdata/${path}`));
      if (copy === 'absent') return undefined;
      if (typeof copy === 'string') throw new Error(`userdata/${path} cannot be read`);
      await store(copy);
      const { hash, sizeBytes } = copy;
      return { kind: 'userFile', path, hash, sizeBytes, modifiedAtMs };
    },
    /** Removes the blobs that the finished backup does not name. */
    async removeOthers(): Promise<void> {
      const paths = new Set([...wanted].map(blobPath));
      for (const path of await filesBelow(join(into, 'blobs')))
        if (!paths.has(`blobs/${path}`)) await rm(join(into, 'blobs', path), { force: true });
    },
  };
}
