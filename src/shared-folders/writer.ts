import { reached } from '../lib/crash-point.ts';
import { createKeyedMutex } from '../lib/concurrency.ts';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { completesWithin } from '../lib/completes-within.ts';
import type { Folder } from './folder.ts';
import {
  type PendingFile,
  type ConflictRule,
  type FolderWriteServices,
  pathKeyOf,
  writePendingFile,
} from './pending-file.ts';

/** Writes pending files to a folder, at once or as soon as its disk allows, also after a restart. */
export type FolderWriter = Awaited<ReturnType<typeof openFolderWriter>>;

type FolderWriterOptions = FolderWriteServices & { readonly files: FileStore };

type RecordName = (isOurs: Promise<boolean>) => Promise<boolean>;

/** How long a client waits for a file to be there; v1 writes it before it says so. */
const MAX_WAIT_MS = 30_000;
const RETRY_MS = { first: 5_000, last: 5 * 60_000 } as const;

/** Pending files are rows of an impossible user, so that they are in one ledger with the files. */
export async function openFolderWriter(deps: FolderWriterOptions) {
  const { folder, files, log } = deps;
  const folderOwner = folderUser(folder);
  const stopController = new AbortController();
  const pending = await loadPending(files, folderOwner);
  const inKeyOrder = createKeyedMutex();
  const writes = new Set<Promise<void>>();
  let retryMs: number = RETRY_MS.first;
  let timer: NodeJS.Timeout | undefined;

  /** One write at a time for each name; the second one writes the file pending by then. */
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
      // It goes to the end: the next attempt starts with the others.
      if (pending.get(key) === pendingFile && pending.delete(key)) pending.set(key, pendingFile);
      const { code, message } = error as NodeJS.ErrnoException;
      const file = { folder: pendingFile.row.type, file: key };
      log.warn(
        {
          event: 'shared_folder.write_failed',
          ...file,
          reason: code ?? message,
          pending: pending.size,
        },
        'a file could not be written to its folder, trying again later',
      );
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
    // A disk that is full is not asked again for each of them.
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
    pending.set(pathKeyOf(pendingFile.row), pendingFile);
    return files.put(pendingRow(pendingFile));
  }

  /** Two processes with a pending file of one name would overwrite each other. */
  function claimPending(pendingFile: PendingFile): Promise<boolean> {
    pending.set(pathKeyOf(pendingFile.row), pendingFile);
    return files.claim(pendingRow(pendingFile));
  }

  /** Keeps it pending when a newer file of the name is pending by now, here or at another process. */
  async function removePending(pendingFile: PendingFile): Promise<void> {
    const { row } = pendingFile;
    const savedRow = await files.get(folderOwner, row);
    if (pending.get(pathKeyOf(row)) !== pendingFile) return;
    pending.delete(pathKeyOf(row));
    const isOurs = savedRow?.assetId === row.assetId && savedRow.modifiedAtMs === row.modifiedAtMs;
    if (isOurs) await files.remove(folderOwner, row);
  }

  async function recordBoth(pendingFile: PendingFile, record: RecordName): Promise<boolean> {
    const saving =
      pendingFile.rule === 'newer'
        ? savePending(pendingFile).then(() => true)
        : claimPending(pendingFile);
    // Both writes may begin in the same turn of the event loop: one transaction.
    const [isOurs, isRecorded] = await Promise.all([saving, record(saving)]);
    reached('folder-owed');
    // A file whose name was refused is not pending.
    if (isRecorded && !isOurs) await savePending(pendingFile);
    else if (!isRecorded && isOurs) await removePending(pendingFile);
    else if (!isRecorded && pending.get(pathKeyOf(pendingFile.row)) === pendingFile)
      pending.delete(pathKeyOf(pendingFile.row));
    return isRecorded;
  }

  return {
    /** True while any process has the file pending. After `false` it is in the folder, or was removed. */
    isPending: async (row: Pick<FileRow, 'type' | 'subfolder' | 'filename'>) =>
      pending.has(pathKeyOf(row)) || (await files.get(folderOwner, row)) !== undefined,
    /** The keys of all pending files. */
    pendingKeys: async (): Promise<ReadonlySet<string>> =>
      new Set([...pending.keys(), ...(await loadPending(files, folderOwner)).keys()]),
    /**
     * Makes a file pending from the moment its name is recorded; false when `record` refused the name. It may
     * wait until it is certain that no other process has a pending file of that name; `newer` never waits.
     */
    async writeAfter(row: FileRow, rule: ConflictRule, record: RecordName): Promise<boolean> {
      const key = pathKeyOf(row);
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
    /** Makes files pending that have their names already. */
    addPending: async (rows: readonly FileRow[], rule: ConflictRule) =>
      void (await Promise.all(rows.map((row) => savePending({ row, rule })))),
    /** Starts writing the pending files of earlier processes. */
    start: () => void writeAll(),
    /** Files that are not written by now stay pending. */
    async close() {
      stopController.abort();
      clearTimeout(timer);
      await Promise.all(writes);
    },
  };
}

/** The user under which a folder's pending files and notes are stored. */
export function folderUser({ id }: Pick<Folder, 'id'>): string {
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
  return new Map(
    rows.map((row) => [pathKeyOf(row), { row, rule: row.contentType as ConflictRule }]),
  );
}
