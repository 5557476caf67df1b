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

/** The inputs of the local user, read from the folder. */
type Inputs = {
  /** The functions that replace those of the ledger for this user. */
  readonly store: Partial<FileStore>;
  /** Uploads a file again that the upstream has lost. Returns the id of the new asset. */
  reupload(name: FileName): Promise<string | undefined>;
};

type InputFolderOptions = {
  readonly folder: Folder;
  readonly writer: FolderWriter;
  readonly files: FileStore;
  readonly jobs: FileStoringServices['jobs'];
  readonly user: string;
  readonly spoolDir: string;
};

/**
 * Creates the inputs of a folder. The folder decides which files exist; the ledger caches their assets. A file is read
 * and stored when it is first requested by name, and again when it has changed.
 */
export function createInputs(options: InputFolderOptions): Inputs {
  const { folder, writer, files, user } = options;
  const reading = new Map<string, Promise<FileRow>>();

  /** Reads a file. Concurrent requests for one name get the same asset. */
  function readOnce(name: FileName): Promise<FileRow> {
    const key = `${name.subfolder}/${name.filename}`;
    const task =
      reading.get(key) ?? readFile(options, name).finally(() => void reading.delete(key));
    reading.set(key, task);
    return task;
  }

  async function get(requested: FileName): Promise<FileRow | undefined> {
    const name = folder.nameOf(requested);
    const row = await files.get(user, inputName(name));
    const stats = await folder.look(name);
    if (row === undefined) return stats && (await readOnce(name));
    if (stats && matchesRow(row, stats)) return row;
    if (!(stats && isNewer(row, stats)) && (await writer.isPending(row))) return row;
    // The file may have been written between the two checks.
    const found = await folder.look(name);
    if (found) return matchesRow(row, found) ? row : await readOnce(name);
    return (await folder.isAvailable()) ? undefined : row;
  }

  /** Records a name. Call it only when no other process has a pending file of this name. */
  async function recordName(row: FileRow): Promise<boolean> {
    if (await folder.exists(row)) return false;
    if ((await files.get(user, row)) === undefined) return files.claim(row);
    // Replace the record of a file that was removed from the folder.
    return files.put(row).then(() => true);
  }

  async function list(): Promise<readonly FileRow[]> {
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

  const store: Partial<FileStore> = {
    get: (_, name) => get(name),
    list,
    async put(row) {
      const stats = await folder.look(row);
      // The folder already has this file, so only its record changes.
      if (stats && matchesRow(row, stats)) return files.put(row);
      await writer.writeAfter(row, 'newer', () => files.put(row).then(() => true));
    },
    async claim(row) {
      if (await folder.exists(row)) return false;
      return writer.writeAfter(row, 'theirs', async (isOurs) => (await isOurs) && recordName(row));
    },
  };

  return {
    store,
    async reupload(name) {
      if ((await folder.look(name)) === undefined) return undefined;
      return (await readOnce(name)).assetId;
    },
  };
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
