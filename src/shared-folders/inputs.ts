import { rm } from 'node:fs/promises';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { spoolStream } from '../lib/spool.ts';
import { V1Error } from '../dialects/errors.ts';
import { type FileStoringServices, storeBytes, contentTypeFor } from '../files/store-file.ts';
import type { FileStats } from '../files/folder-paths.ts';
import type { SpooledFile } from '../protocol/job-api.ts';
import { type Folder, type FileName, matchesRow } from './folder.ts';
import { type FolderWriter, folderUser } from './writer.ts';
import { pathOf } from '../files/asset-catalog.ts';

type InputFolderOptions = {
  readonly folder: Folder;
  readonly writer: FolderWriter;
  readonly files: FileStore;
  readonly jobs: FileStoringServices['jobs'];
  readonly user: string;
  readonly spoolDir: string;
};

/**
 * The inputs of the local user, read from a folder. The folder decides which files exist; the ledger caches their
 * assets. A file is read and stored when it is first requested by name, and again when it has changed.
 */
export class FolderInputs {
  /** The functions that replace those of the ledger for this user. */
  readonly store: Partial<FileStore> = {
    get: (_, name) => this.#get(name),
    list: () => this.#list(),
    put: (row) => this.#put(row),
    claim: (row) => this.#claim(row),
  };
  readonly #options: InputFolderOptions;
  readonly #reading = new Map<string, Promise<FileRow>>();

  constructor(options: InputFolderOptions) {
    this.#options = options;
  }

  /** Uploads a file again that the upstream has lost. Returns the id of the new asset. */
  async reupload(name: FileName): Promise<string | undefined> {
    if ((await this.#options.folder.look(name)) === undefined) return undefined;
    return (await this.#readOnce(name)).assetId;
  }

  /** Reads a file. Concurrent requests for one name get the same asset. */
  #readOnce(name: FileName): Promise<FileRow> {
    const key = `${name.subfolder}/${name.filename}`;
    const task =
      this.#reading.get(key) ??
      readFile(this.#options, name).finally(() => void this.#reading.delete(key));
    this.#reading.set(key, task);
    return task;
  }

  async #get(requested: FileName): Promise<FileRow | undefined> {
    const { folder, writer, files, user } = this.#options;
    const name = folder.nameOf(requested);
    const row = await files.get(user, inputName(name));
    const stats = await folder.look(name);
    if (row === undefined) return stats && (await this.#readOnce(name));
    if (stats && matchesRow(row, stats)) return row;
    if (!(stats && isNewer(row, stats)) && (await writer.isPending(row))) return row;
    // The file may have been written between the two checks.
    const found = await folder.look(name);
    if (found) return matchesRow(row, found) ? row : await this.#readOnce(name);
    return (await folder.isAvailable()) ? undefined : row;
  }

  async #list(): Promise<readonly FileRow[]> {
    const { folder, writer, files, user } = this.#options;
    const rows = await files.list(user, 'input');
    if (!(await folder.isAvailable())) return rows;
    // Read the pending keys before the folder: a file that is no longer pending is then found in the folder.
    const pendingKeys = await writer.pendingKeys();
    const rowsByKey = new Map(rows.map((row) => [pathOf(row), row]));
    const presentRows = (await folder.list()).map((entry) => {
      const key = pathOf(entry);
      const row = rowsByKey.get(key);
      rowsByKey.delete(key);
      const isCurrent = row && (matchesRow(row, entry.stats) || pendingKeys.has(key));
      return isCurrent && !isNewer(row, entry.stats) ? row : unreadRow(user, entry, entry.stats);
    });
    const pendingRows = [...rowsByKey.values()].filter((row) => pendingKeys.has(pathOf(row)));
    return [...presentRows, ...pendingRows].toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs);
  }

  async #put(row: FileRow): Promise<void> {
    const { folder, writer, files } = this.#options;
    const stats = await folder.look(row);
    // The folder already has this file, so only its record changes.
    if (stats && matchesRow(row, stats)) return files.put(row);
    await writer.writeAfter(row, 'newer', () => files.put(row).then(() => true));
  }

  async #claim(row: FileRow): Promise<boolean> {
    const { folder, writer } = this.#options;
    if (await folder.exists(row)) return false;
    return writer.writeAfter(
      row,
      'theirs',
      async (isOurs) => (await isOurs) && this.#recordName(row),
    );
  }

  /** Records a name. Call it only when no other process has a pending file of this name. */
  async #recordName(row: FileRow): Promise<boolean> {
    const { folder, files, user } = this.#options;
    if (await folder.exists(row)) return false;
    if ((await files.get(user, row)) === undefined) return files.claim(row);
    // Replace the record of a file that was removed from the folder.
    return files.put(row).then(() => true);
  }
}

/** Adds the uploads from before the folder was configured to it, once for each folder. */
export async function shareExisting({
  folder,
  writer,
  files,
  user,
}: InputFolderOptions): Promise<void> {
  const owner = folderUser(folder);
  if (await files.get(owner, SHARED_NOTE)) return;
  const absentRows: FileRow[] = [];
  for (const row of await files.list(user, 'input')) {
    if ((await folder.look(row)) === undefined) absentRows.push(row);
  }
  const note = { ...SHARED_NOTE, user: owner, assetId: '', hash: null, contentType: '' };
  await Promise.all([
    writer.addPending(absentRows, 'theirs'),
    files.put({ ...note, sizeBytes: 0, modifiedAtMs: 0 }),
  ]);
}

/** The record that earlier uploads were added to a folder. No file can have this name. */
const SHARED_NOTE = { type: 'temp', subfolder: '', filename: '/shared' } as const;

const inputName = ({ subfolder, filename }: FileName) =>
  ({ type: 'input', subfolder, filename }) as const;

function isNewer(row: FileRow, stats: FileStats): boolean {
  return Math.round(stats.mtimeMs) > row.modifiedAtMs;
}

/** Returns the row of a file that was not read yet. It has no asset and no hash. */
function unreadRow(user: string, { subfolder, filename }: FileName, stats: FileStats): FileRow {
  return {
    ...inputName({ subfolder, filename }),
    user,
    assetId: '',
    hash: null,
    sizeBytes: stats.size,
    contentType: contentTypeFor(filename),
    modifiedAtMs: Math.round(stats.mtimeMs),
  };
}

async function readFile(
  { folder, files, jobs, user, spoolDir }: InputFolderOptions,
  name: FileName,
): Promise<FileRow> {
  const { stats, file } = await spoolInput(folder, name, spoolDir);
  try {
    const newFile = { ...inputName(name), caller: { user }, file };
    const asset = await storeBytes(jobs, newFile);
    const row = { ...unreadRow(user, name, stats), assetId: asset.id, hash: file.hash };
    await files.put({ ...row, sizeBytes: file.sizeBytes });
    return row;
  } finally {
    await rm(file.path, { force: true });
  }
}

/**
 * Copies a file into the spool folder. If the file changes meanwhile, its size or time changes, and the next request
 * reads it again.
 */
async function spoolInput(
  folder: Folder,
  name: FileName,
  dir: string,
): Promise<{ readonly stats: FileStats; readonly file: SpooledFile }> {
  const handle = await folder.open(name);
  const stats = await handle.stat();
  const source = handle.createReadStream();
  try {
    const spoolResult = await spoolStream(source, { dir, maxBytes: Infinity });
    if (!spoolResult.ok) throw new V1Error(spoolResult.status, spoolResult.message);
    return { stats, file: spoolResult.value };
  } finally {
    source.destroy();
  }
}
