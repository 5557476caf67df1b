import type { Stats } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { spoolStream } from '../lib/spool.ts';
import { V1Error } from '../dialects/errors.ts';
import { type FileStoringServices, storeBytes, contentTypeFor } from '../files/store-file.ts';
import type { SpooledFile } from '../protocol/job-api.ts';
import { type Folder, type FileName, matchesRow } from './folder.ts';
import { type FolderWriter, folderUser } from './writer.ts';
import { pathKeyOf } from './pending-file.ts';

/** Inputs of the local user as the folder has them. */
type Inputs = {
  /** The functions of the user's store that differ from the ledger's. */
  readonly store: Partial<FileStore>;
  /** Gives the upstream a file once more that it does not have any longer; the new asset's id. */
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
 * The folder counts, the ledger remembers: a file is read and stored when it is first asked for by
 * name, and again when it has changed; a name whose file was removed is gone.
 */
export function createInputs(options: InputFolderOptions): Inputs {
  const { folder, writer, files, user } = options;
  const reading = new Map<string, Promise<FileRow>>();

  /** Two that ask at the same time get the same asset. */
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
    if ((await writer.isPending(row)) && isOlderOrAbsent(row, stats)) return row;
    // A file that is no longer pending may have been written since.
    const found = await folder.look(name);
    if (found) return matchesRow(row, found) ? row : await readOnce(name);
    return (await folder.isAvailable()) ? undefined : row;
  }

  /** Records a name that no other process is about to write. */
  async function recordName(row: FileRow): Promise<boolean> {
    if (await folder.exists(row)) return false;
    if ((await files.get(user, row)) === undefined) return files.claim(row);
    // The record of a file that was removed from the folder makes way.
    return files.put(row).then(() => true);
  }

  async function list(): Promise<readonly FileRow[]> {
    const rows = await files.list(user, 'input');
    if (!(await folder.isAvailable())) return rows;
    // In this order: a file that is no longer pending is in the folder.
    const pendingKeys = await writer.pendingKeys();
    const rowsByKey = new Map(rows.map((row) => [pathKeyOf(row), row]));
    const presentRows = (await folder.list()).map((entry) => {
      const key = pathKeyOf(entry);
      const row = rowsByKey.get(key);
      rowsByKey.delete(key);
      const isCurrent = row && (matchesRow(row, entry.stats) || pendingKeys.has(key));
      return isCurrent && !isNewer(row, entry.stats) ? row : unreadRow(user, entry, entry.stats);
    });
    const pendingRows = [...rowsByKey.values()].filter((row) => pendingKeys.has(pathKeyOf(row)));
    return [...presentRows, ...pendingRows].toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs);
  }

  const store: Partial<FileStore> = {
    get: (_, name) => get(name),
    list,
    newestNamed: async (_, { filename }) => (await list()).find((row) => row.filename === filename),
    async put(row) {
      const stats = await folder.look(row);
      // The record of a file that lies there changes, not the file.
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

/** Uploads from before the folder was named appear in it; once for each folder. */
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

/** Notes that a folder has got what was there before; no file is called so. */
const SHARED_NOTE = { type: 'temp', subfolder: '', filename: '/shared' } as const;

function inputName({ subfolder, filename }: FileName) {
  return { type: 'input', subfolder, filename } as const;
}

/** True when the folder has an older file than the row, or none. */
function isOlderOrAbsent(row: FileRow, stats: Stats | undefined): boolean {
  return stats === undefined || !isNewer(row, stats);
}

function isNewer(row: FileRow, stats: Stats): boolean {
  return Math.round(stats.mtimeMs) > row.modifiedAtMs;
}

/** The row of a file that was not read yet: its bytes are only in the folder. */
function unreadRow(user: string, { subfolder, filename }: FileName, stats: Stats): FileRow {
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

type SpooledInput = { readonly stats: Stats; readonly file: SpooledFile };

/** A file that grows while it is read has another size or time afterwards, and is read again when asked for. */
async function spoolInput(folder: Folder, name: FileName, dir: string): Promise<SpooledInput> {
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
