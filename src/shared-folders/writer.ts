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

type FolderWriterOptions = FolderWriteServices & { readonly files: FileStore };

type RecordName = (isOurs: Promise<boolean>) => Promise<boolean>;

/** The maximum time that a client waits until its file is in the folder. v1 writes the file before it answers. */
const MAX_WAIT_MS = 30_000;
const RETRY_MS = { first: 5_000, last: 5 * 60_000 } as const;

/**
 * Opens a writer. Its pending files are rows of a user that cannot exist, so that the ledger with the files also has
 * them.
 */
export async function openFolderWriter(options: FolderWriterOptions): Promise<FolderWriter> {
  return new FolderWriter(options, await loadPending(options.files, folderUser(options.folder)));
}

/** Writes pending files to a folder. Failed writes are repeated, also after a restart. */
export class FolderWriter {
  readonly #options: FolderWriterOptions;
  readonly #folderOwner: string;
  readonly #pending: Map<string, PendingFile>;
  readonly #stopController = new AbortController();
  readonly #inKeyOrder = createKeyedMutex();
  readonly #writes = new Set<Promise<void>>();
  #retryMs: number = RETRY_MS.first;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FolderWriterOptions, pending: Map<string, PendingFile>) {
    this.#options = options;
    this.#folderOwner = folderUser(options.folder);
    this.#pending = pending;
  }

  /** Returns true while a process has to write the file. After `false` it is in the folder, or was removed. */
  async isPending(row: FileRow): Promise<boolean> {
    if (this.#pending.has(pathOf(row))) return true;
    return (await this.#options.files.get(this.#folderOwner, row)) !== undefined;
  }

  /** Returns the keys of the pending files of all processes. */
  async pendingKeys(): Promise<ReadonlySet<string>> {
    const own = [...this.#pending.keys()];
    const all = await loadPending(this.#options.files, this.#folderOwner);
    return new Set([...own, ...all.keys()]);
  }

  /**
   * Records the name of a file with `record`, and writes the file. Returns false when `record` refused the name.
   * Except with the rule `newer`, `record` may wait until it is known that no other process has a pending file of
   * this name.
   */
  async writeAfter(row: FileRow, rule: ConflictRule, record: RecordName): Promise<boolean> {
    const key = pathOf(row);
    const earlier = this.#pending.get(key);
    if (earlier && rule !== 'newer') return false;
    const pendingFile = { row, rule };
    try {
      if (!(await this.#recordBoth(pendingFile, record))) return false;
      await completesWithin(MAX_WAIT_MS, this.#writeInOrder(key));
      return true;
    } catch (error) {
      if (this.#pending.get(key) === pendingFile) {
        if (earlier) this.#pending.set(key, earlier);
        else this.#pending.delete(key);
      }
      throw error;
    }
  }

  /** Makes files pending whose names are already recorded. */
  async addPending(rows: readonly FileRow[], rule: ConflictRule): Promise<void> {
    await Promise.all(rows.map((row) => this.#savePending({ row, rule })));
  }

  /** Starts writing the pending files of earlier processes. */
  start(): void {
    void this.#writeAll();
  }

  /** Stops all writes. Files that are not written stay pending. */
  async close(): Promise<void> {
    this.#stopController.abort();
    clearTimeout(this.#timer);
    await Promise.all(this.#writes);
  }

  async #recordBoth(pendingFile: PendingFile, record: RecordName): Promise<boolean> {
    const { files } = this.#options;
    const key = pathOf(pendingFile.row);
    this.#pending.set(key, pendingFile);
    // The claim fails when another process has a pending file of this name: one would overwrite the other.
    const saving =
      pendingFile.rule === 'newer'
        ? files.put(this.#pendingRow(pendingFile)).then(() => true)
        : files.claim(this.#pendingRow(pendingFile));
    // Both writes begin in the same turn of the event loop if possible, and then are one transaction.
    const [isOurs, isRecorded] = await Promise.all([saving, record(saving)]);
    reached('folder-owed');
    // A file is pending exactly when its name was recorded.
    if (isRecorded && !isOurs) await this.#savePending(pendingFile);
    else if (!isRecorded && isOurs) await this.#removePending(pendingFile);
    else if (!isRecorded && this.#pending.get(key) === pendingFile) this.#pending.delete(key);
    return isRecorded;
  }

  #pendingRow({ row, rule }: PendingFile): FileRow {
    return { ...row, user: this.#folderOwner, contentType: rule };
  }

  #savePending(pendingFile: PendingFile): Promise<void> {
    this.#pending.set(pathOf(pendingFile.row), pendingFile);
    return this.#options.files.put(this.#pendingRow(pendingFile));
  }

  /** Removes a file from the pending ones, unless a newer file of this name is pending here or at another process. */
  async #removePending(pendingFile: PendingFile): Promise<void> {
    const { files } = this.#options;
    const { row } = pendingFile;
    const savedRow = await files.get(this.#folderOwner, row);
    if (this.#pending.get(pathOf(row)) !== pendingFile) return;
    this.#pending.delete(pathOf(row));
    const isOurs = savedRow?.assetId === row.assetId && savedRow.modifiedAtMs === row.modifiedAtMs;
    if (isOurs) await files.remove(this.#folderOwner, row);
  }

  async #writeAll(): Promise<void> {
    // Stop at the first failure: on a full disk all of them would fail.
    for (const key of this.#pending.keys()) {
      await this.#writeInOrder(key);
      if (this.#timer !== undefined) return;
    }
    this.#retryMs = RETRY_MS.first;
  }

  /** Makes one write at a time for each name. A second one writes the file that is pending when it begins. */
  #writeInOrder(key: string): Promise<void> {
    const write = this.#inKeyOrder(key, () => this.#tryWrite(key));
    this.#writes.add(write);
    return write.finally(() => this.#writes.delete(write));
  }

  async #tryWrite(key: string): Promise<void> {
    const pendingFile = this.#pending.get(key);
    const { signal } = this.#stopController;
    if (pendingFile === undefined || signal.aborted) return;
    try {
      await writePendingFile(this.#options, pendingFile, signal);
      await this.#removePending(pendingFile);
    } catch (error) {
      if (!signal.aborted) this.#retryLater(pendingFile, error);
    }
  }

  #retryLater(pendingFile: PendingFile, error: unknown): void {
    const key = pathOf(pendingFile.row);
    // Move the file to the end, so that the next attempt starts with the others.
    if (this.#pending.get(key) === pendingFile && this.#pending.delete(key))
      this.#pending.set(key, pendingFile);
    const { code, message } = error as NodeJS.ErrnoException;
    const file = { folder: pendingFile.row.type, file: key, pending: this.#pending.size };
    const fields = { event: 'shared_folder.write_failed', ...file, reason: code ?? message };
    this.#options.log.warn(fields, 'a file could not be written to its folder, trying again later');
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS.last);
      void this.#writeAll();
    }, this.#retryMs).unref();
  }
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
