import { reached } from '../lib/crash-point.ts';
import { createKeyedMutex } from '../lib/concurrency.ts';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { completesWithin } from '../lib/completes-within.ts';
import { pathOf } from '../files/asset-catalog.ts';
import type { Folder } from './folder.ts';
import {
  type PendingFile,
  type ConflictRule,
  type FolderWriteServices,
  writePendingFile,
} from './pending-file.ts';

/** Writes pending files to a folder. Failed writes are repeated, also after a restart. */
export interface FolderWriter {
  /** Returns true while a process has to write the file. After `false` it is in the folder, or was removed. */
  readonly isPending: (row: FileRow) => Promise<boolean>;
  /** Returns the keys of the pending files of all processes. */
  readonly pendingKeys: () => Promise<ReadonlySet<string>>;
  /**
   * Records the name of a file with `record`, and writes the file. Returns false when `record` refused the name.
   * Except with the rule `newer`, `record` may wait until it is known that no other process has a pending file of
   * this name.
   */
  writeAfter(row: FileRow, rule: ConflictRule, record: RecordName): Promise<boolean>;
  /** Makes files pending whose names are already recorded. */
  readonly addPending: (rows: readonly FileRow[], rule: ConflictRule) => Promise<void>;
  /** Starts writing the pending files of earlier processes. */
  readonly start: () => void;
  /** Stops all writes. Files that are not written stay pending. */
  close(): Promise<void>;
}

type FolderWriterOptions = FolderWriteServices & { readonly files: FileStore };

type RecordName = (isOurs: Promise<boolean>) => Promise<boolean>;

/** The maximum time that a client waits until its file is in the folder. v1 writes the file before it answers. */
const MAX_WAIT_MS = 30_000;
const RETRY_MS = { first: 5_000, last: 5 * 60_000 } as const;

/**
 * Opens a writer. Its pending files are rows of a user that cannot exist, so that the ledger with the files also has
 * them.
 */
export async function openFolderWriter(deps: FolderWriterOptions): Promise<FolderWriter> {
  const { folder, files, log } = deps;
  const folderOwner = folderUser(folder);
  const stopController = new AbortController();
  const pending = await loadPending(files, folderOwner);
  const inKeyOrder = createKeyedMutex();
  const writes = new Set<Promise<void>>();
  let retryMs: number = RETRY_MS.first;
  let timer: NodeJS.Timeout | undefined;

  /** Makes one write at a time for each name. A second one writes the file that is pending when it begins. */
  function writeInOrder(key: string): Promise<void> {
    const write = inKeyOrder(key, () => tryWrite(key));
    writes.add(write);
    return write.finally(() => writes.delete(write));
  }

  async function tryWrite(key: string): Promise<void> {
    const pendingFile = pending.get(key);
    if (pendingFile === undefined || stopController.signal.aborted) return;
    try {
      await writePendingFile(deps, pendingFile, stopController.signal);
      await removePending(pendingFile);
    } catch (error) {
      if (stopController.signal.aborted) return;
      // Move the file to the end, so that the next attempt starts with the others.
      if (pending.get(key) === pendingFile && pending.delete(key)) pending.set(key, pendingFile);
      const { code, message } = error as NodeJS.ErrnoException;
      const file = { folder: pendingFile.row.type, file: key, pending: pending.size };
      const fields = { event: 'shared_folder.write_failed', ...file, reason: code ?? message };
      log.warn(fields, 'a file could not be written to its folder, trying again later');
      retryLater();
    }
  }

  function retryLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      retryMs = Math.min(retryMs * 2, RETRY_MS.last);
      void writeAll();
    }, retryMs).unref();
  }

  async function writeAll(): Promise<void> {
    // Stop at the first failure: on a full disk all of them would fail.
    for (const key of pending.keys()) {
      await writeInOrder(key);
      if (timer !== undefined) return;
    }
    retryMs = RETRY_MS.first;
  }

  const pendingRow = ({ row, rule }: PendingFile): FileRow => ({
    ...row,
    user: folderOwner,
    contentType: rule,
  });

  function savePending(pendingFile: PendingFile): Promise<void> {
    pending.set(pathOf(pendingFile.row), pendingFile);
    return files.put(pendingRow(pendingFile));
  }

  /** Removes a file from the pending ones, unless a newer file of this name is pending here or at another process. */
  async function removePending(pendingFile: PendingFile): Promise<void> {
    const { row } = pendingFile;
    const savedRow = await files.get(folderOwner, row);
    if (pending.get(pathOf(row)) !== pendingFile) return;
    pending.delete(pathOf(row));
    const isOurs = savedRow?.assetId === row.assetId && savedRow.modifiedAtMs === row.modifiedAtMs;
    if (isOurs) await files.remove(folderOwner, row);
  }

  async function recordBoth(pendingFile: PendingFile, record: RecordName): Promise<boolean> {
    pending.set(pathOf(pendingFile.row), pendingFile);
    // The claim fails when another process has a pending file of this name: one would overwrite the other.
    const saving =
      pendingFile.rule === 'newer'
        ? files.put(pendingRow(pendingFile)).then(() => true)
        : files.claim(pendingRow(pendingFile));
    // Both writes begin in the same turn of the event loop if possible, and then are one transaction.
    const [isOurs, isRecorded] = await Promise.all([saving, record(saving)]);
    reached('folder-owed');
    // A file is pending exactly when its name was recorded.
    if (isRecorded && !isOurs) await savePending(pendingFile);
    else if (!isRecorded && isOurs) await removePending(pendingFile);
    else if (!isRecorded && pending.get(pathOf(pendingFile.row)) === pendingFile)
      pending.delete(pathOf(pendingFile.row));
    return isRecorded;
  }

  return {
    isPending: async (row) =>
      pending.has(pathOf(row)) || (await files.get(folderOwner, row)) !== undefined,
    pendingKeys: async () =>
      new Set([...pending.keys(), ...(await loadPending(files, folderOwner)).keys()]),
    async writeAfter(row, rule, record) {
      const key = pathOf(row);
      if (pending.has(key) && rule !== 'newer') return false;
      const pendingFile = { row, rule };
      const earlier = pending.get(key);
      try {
        if (!(await recordBoth(pendingFile, record))) return false;
        await completesWithin(MAX_WAIT_MS, writeInOrder(key));
        return true;
      } catch (error) {
        if (pending.get(key) === pendingFile) {
          if (earlier) pending.set(key, earlier);
          else pending.delete(key);
        }
        throw error;
      }
    },
    addPending: async (rows, rule) =>
      void (await Promise.all(rows.map((row) => savePending({ row, rule })))),
    start: () => void writeAll(),
    async close() {
      stopController.abort();
      clearTimeout(timer);
      await Promise.all(writes);
    },
  };
}

/** Returns the user of the rows for a folder's pending files and notes. */
export function folderUser({ id }: Folder): string {
  return `folder ${id}`;
}

async function loadPending(
  files: FileStore,
  folderOwner: string,
): Promise<Map<string, PendingFile>> {
  const rows = [
    ...(await files.list(folderOwner, 'input')),
    ...(await files.list(folderOwner, 'output')),
  ];
  return new Map(rows.map((row) => [pathOf(row), { row, rule: row.contentType as ConflictRule }]));
}
