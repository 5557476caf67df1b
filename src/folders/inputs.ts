import type { Stats } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { spoolStream } from '../spool.ts';
import { V1Error } from '../v1/errors.ts';
import { type KeepDeps, storeBytes, typeOf } from '../v1/keep-file.ts';
import type { SpooledFile } from '../wire/jobs.ts';
import { type Folder, type Name, isFileOf } from './folder.ts';
import { type Mirror, ownerOf } from './mirror.ts';
import { keyOf } from './write.ts';

/** Inputs of the local user as the folder has them. */
export type Inputs = Pick<FileStore, 'put' | 'claim'> & {
  get(name: Name): Promise<FileRow | undefined>;
  list(): Promise<readonly FileRow[]>;
  /** Gives the upstream a file once more that it does not have any longer; the new asset's id. */
  resend(name: Name): Promise<string | undefined>;
};

type Deps = {
  readonly folder: Folder;
  readonly mirror: Mirror;
  readonly files: FileStore;
  readonly jobs: KeepDeps['jobs'];
  readonly user: string;
  readonly spoolDir: string;
};

/**
 * The folder counts, the ledger remembers: a file is read and stored when it is first asked for by
 * name, and again when it has changed; a name whose file was removed is gone.
 */
export function createInputs(deps: Deps): Inputs {
  const { folder, mirror, files, user } = deps;
  const underWay = new Map<string, Promise<FileRow>>();

  /** Two that ask at the same time get the same asset. */
  function adopt(name: Name): Promise<FileRow> {
    const key = `${name.subfolder}/${name.filename}`;
    const task = underWay.get(key) ?? readIn(deps, name).finally(() => void underWay.delete(key));
    underWay.set(key, task);
    return task;
  }

  async function get(name: Name): Promise<FileRow | undefined> {
    const row = await files.get(user, nameOf(name));
    const stats = await folder.look(name);
    if (row === undefined) return stats && (await adopt(name));
    if (stats && isFileOf(row, stats)) return row;
    if ((await mirror.isOwed(row)) && isBehind(row, stats)) return row;
    // What is not owed any more may have been written since.
    const found = await folder.look(name);
    if (found) return isFileOf(row, found) ? row : await adopt(name);
    return (await folder.isThere()) ? undefined : row;
  }

  /** Nobody else is about to write a file of that name. */
  async function enter(row: FileRow): Promise<boolean> {
    if (await folder.isTaken(row)) return false;
    if ((await files.get(user, row)) === undefined) return files.claim(row);
    // The record of a file that was removed from the folder makes way.
    return files.put(row).then(() => true);
  }

  return {
    get,
    async list() {
      const rows = await files.list(user, 'input');
      if (!(await folder.isThere())) return rows;
      // In this order: what is not owed any more is in the folder.
      const owed = await mirror.owed();
      const known = new Map(rows.map((row) => [keyOf(row), row]));
      const present = (await folder.list()).map((entry) => {
        const key = keyOf(entry);
        const row = known.get(key);
        known.delete(key);
        const counts = row && (isFileOf(row, entry.stats) || owed.has(key));
        return counts && !isAhead(row, entry.stats) ? row : unread(user, entry, entry.stats);
      });
      const absent = [...known.values()].filter((row) => owed.has(keyOf(row)));
      return [...present, ...absent].toSorted((a, b) => b.modifiedAtMs - a.modifiedAtMs);
    },
    async put(row) {
      const stats = await folder.look(row);
      // The record of a file that lies there changes, not the file.
      if (stats && isFileOf(row, stats)) return files.put(row);
      await mirror.take(row, 'newer', () => files.put(row).then(() => true));
    },
    async claim(row) {
      if (await folder.isTaken(row)) return false;
      return mirror.take(row, 'theirs', async (isOurs) => (await isOurs) && enter(row));
    },
    async resend(name) {
      if ((await folder.look(name)) === undefined) return undefined;
      return (await adopt(name)).assetId;
    },
  };
}

/** Uploads from before the folder was named appear in it; once for each folder. */
export async function shareEarlier({ folder, mirror, files, user }: Deps): Promise<void> {
  const owner = ownerOf(folder);
  if (await files.get(owner, SHARED)) return;
  const missing: FileRow[] = [];
  for (const row of await files.list(user, 'input')) {
    if ((await folder.look(row)) === undefined) missing.push(row);
  }
  const note = { ...SHARED, user: owner, assetId: '', hash: null, contentType: '' };
  await Promise.all([
    mirror.owe(missing, 'theirs'),
    files.put({ ...note, sizeBytes: 0, modifiedAtMs: 0 }),
  ]);
}

/** Notes that a folder has got what was there before; no file is called so. */
const SHARED = { type: 'temp', subfolder: '', filename: '/shared' } as const;

function nameOf({ subfolder, filename }: Name) {
  return { type: 'input', subfolder, filename } as const;
}

/** Whether the folder has something older than the record is about, or nothing. */
function isBehind(row: FileRow, stats: Stats | undefined): boolean {
  return stats === undefined || !isAhead(row, stats);
}

function isAhead(row: FileRow, stats: Stats): boolean {
  return Math.round(stats.mtimeMs) > row.modifiedAtMs;
}

/** A file nobody has asked for yet: it has a name, and no bytes anywhere but in the folder. */
function unread(user: string, { subfolder, filename }: Name, stats: Stats): FileRow {
  return {
    ...nameOf({ subfolder, filename }),
    user,
    assetId: '',
    hash: null,
    sizeBytes: stats.size,
    contentType: typeOf(filename),
    modifiedAtMs: Math.round(stats.mtimeMs),
  };
}

async function readIn({ folder, files, jobs, user, spoolDir }: Deps, name: Name): Promise<FileRow> {
  const { stats, file } = await spooled(folder, name, spoolDir);
  try {
    const wanted = { ...nameOf(name), caller: { user }, file };
    const asset = await storeBytes(jobs, wanted);
    const row = { ...unread(user, name, stats), assetId: asset.id, hash: file.hash };
    await files.put({ ...row, sizeBytes: file.sizeBytes });
    return row;
  } finally {
    await rm(file.path, { force: true });
  }
}

type Spooled = { readonly stats: Stats; readonly file: SpooledFile };

/** A file that grows while it is read has another size or time afterwards, and is read again when asked for. */
async function spooled(folder: Folder, name: Name, dir: string): Promise<Spooled> {
  const handle = await folder.open(name);
  const stats = await handle.stat();
  const source = handle.createReadStream();
  try {
    const written = await spoolStream(source, { dir, maxBytes: Infinity });
    if (!written.ok) throw new V1Error(written.status, written.message);
    return { stats, file: written.value };
  } finally {
    source.destroy();
  }
}
