import { reached } from '../crash-point.ts';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { within } from '../within.ts';
import type { Folder } from './folder.ts';
import { type Debt, type Rule, type WriteDeps, keyOf, write } from './write.ts';

/** Writes files a folder is owed, at once or as soon as its disk lets it, also after a restart. */
export type Mirror = {
  /**
   * Owes a file from the moment its name is recorded; false when `record` refused the name. It may
   * wait for whether nobody else, of all processes, owes a file of that name; `newer` never does.
   */
  take(row: FileRow, rule: Rule, record: Record): Promise<boolean>;
  /** Owes files that have their names already. */
  owe(rows: readonly FileRow[], rule: Rule): Promise<void>;
  /** Whether any process owes it; who is told that none does finds it in the folder, or it was removed. */
  isOwed(row: Pick<FileRow, 'type' | 'subfolder' | 'filename'>): Promise<boolean>;
  /** The keys of all that is owed. */
  owed(): Promise<ReadonlySet<string>>;
  /** Takes up what an earlier process owed. */
  start(): void;
  /** What is not written by now is owed still. */
  close(): Promise<void>;
};

type Deps = WriteDeps & { readonly files: FileStore };

type Record = (isOurs: Promise<boolean>) => Promise<boolean>;

/** How long a client waits for a file to be there; v1 writes it before it says so. */
const PATIENCE_MS = 30_000;
const RETRY_MS = { first: 5_000, last: 5 * 60_000 } as const;

/** The debts are names of a user nobody can be: one ledger holds them and what they are about. */
export async function openMirror(deps: Deps): Promise<Mirror> {
  const { folder, files, log } = deps;
  const owner = ownerOf(folder);
  const stop = new AbortController();
  const debts = await debtsOf(files, owner);
  const turns = new Map<string, Promise<void>>();
  let retryMs: number = RETRY_MS.first;
  let timer: NodeJS.Timeout | undefined;

  /** One writer for each name; whoever comes second writes what is owed by then. */
  function settle(key: string): Promise<void> {
    const turn = (turns.get(key) ?? Promise.resolve()).then(() => attempt(key));
    turns.set(key, turn);
    return turn.finally(() => turns.get(key) === turn && turns.delete(key));
  }

  async function attempt(key: string): Promise<void> {
    const debt = debts.get(key);
    if (debt === undefined || stop.signal.aborted) return;
    try {
      await write(deps, debt, stop.signal);
      await forget(debt);
    } catch (error) {
      if (stop.signal.aborted) return;
      // Those behind it come first the next time.
      if (debts.get(key) === debt && debts.delete(key)) debts.set(key, debt);
      const { code, message } = error as NodeJS.ErrnoException;
      log.warn(
        { folder: debt.row.type, file: keyOf(debt.row), reason: code ?? message, owed: debts.size },
        'a file could not be written to its folder, trying again later',
      );
      retryLater();
    }
  }

  function retryLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      retryMs = Math.min(retryMs * 2, RETRY_MS.last);
      void settleAll();
    }, retryMs).unref();
  }

  async function settleAll(): Promise<void> {
    // A disk that is full is not asked again for each of them.
    for (const key of debts.keys()) {
      await settle(key);
      if (timer !== undefined) return;
    }
    retryMs = RETRY_MS.first;
  }

  const recordOf = ({ row, rule }: Debt): FileRow => ({ ...row, user: owner, contentType: rule });

  function note(debt: Debt): Promise<void> {
    debts.set(keyOf(debt.row), debt);
    return files.put(recordOf(debt));
  }

  /** Two processes that owe one name would write over each other. */
  function noteFirst(debt: Debt): Promise<boolean> {
    debts.set(keyOf(debt.row), debt);
    return files.claim(recordOf(debt));
  }

  /** Unless more is owed under the name by now, here or by another process. */
  async function forget(debt: Debt): Promise<void> {
    const { row } = debt;
    const noted = await files.get(owner, row);
    if (debts.get(keyOf(row)) !== debt) return;
    debts.delete(keyOf(row));
    const isOurs = noted?.assetId === row.assetId && noted.modifiedAtMs === row.modifiedAtMs;
    if (isOurs) await files.remove(owner, row);
  }

  async function enter(debt: Debt, record: Record): Promise<boolean> {
    const owing = debt.rule === 'newer' ? note(debt).then(() => true) : noteFirst(debt);
    // Both writes may begin in the same turn of the event loop: one transaction.
    const [isOurs, isRecorded] = await Promise.all([owing, record(owing)]);
    reached('folder-owed');
    // Whoever owes a file whose name was refused owes nothing.
    if (isRecorded && !isOurs) await note(debt);
    else if (!isRecorded && isOurs) await forget(debt);
    else if (!isRecorded && debts.get(keyOf(debt.row)) === debt) debts.delete(keyOf(debt.row));
    return isRecorded;
  }

  return {
    isOwed: async (row) => debts.has(keyOf(row)) || (await files.get(owner, row)) !== undefined,
    owed: async () => new Set([...debts.keys(), ...(await debtsOf(files, owner)).keys()]),
    async take(row, rule, record) {
      const key = keyOf(row);
      if (debts.has(key) && rule !== 'newer') return false;
      const debt = { row, rule };
      try {
        if (!(await enter(debt, record))) return false;
        await within(PATIENCE_MS, settle(key));
        return true;
      } catch (error) {
        if (debts.get(key) === debt) debts.delete(key);
        throw error;
      }
    },
    owe: async (rows, rule) => void (await Promise.all(rows.map((row) => note({ row, rule })))),
    start: () => void settleAll(),
    async close() {
      stop.abort();
      clearTimeout(timer);
      await Promise.all(turns.values());
    },
  };
}

/** The user under which a folder's debts and other notes are kept. */
export function ownerOf({ id }: Pick<Folder, 'id'>): string {
  return `folder ${id}`;
}

async function debtsOf(files: FileStore, owner: string): Promise<Map<string, Debt>> {
  const rows = [...(await files.list(owner, 'input')), ...(await files.list(owner, 'output'))];
  return new Map(rows.map((row) => [keyOf(row), { row, rule: row.contentType as Rule }]));
}
