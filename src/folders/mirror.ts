import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { freeNames } from '../translate/names.ts';
import type { Logger } from '../telemetry.ts';
import { openBytes } from '../v1/whole-file.ts';
import { within } from '../within.ts';
import { type JobApi, isGone } from '../wire/jobs.ts';
import { type Folder, type Name, isFileOf } from './folder.ts';

/**
 * What to do where something has the name already. `keep-both`: the file is written under v1's
 * next name; `theirs`: it is not written; `newer`: the one that was changed last stays.
 */
export type Rule = 'keep-both' | 'theirs' | 'newer';

/** Writes files a folder is owed, at once or as soon as its disk lets it, also after a restart. */
export type Mirror = {
  /** Owes a file from the moment its name is recorded; false when `record` refused the name. */
  take(row: FileRow, rule: Rule, record: () => Promise<boolean>): Promise<boolean>;
  /** Owes files that have their names already. */
  owe(rows: readonly FileRow[], rule: Rule): Promise<void>;
  isOwed(name: Name): boolean;
  /** Takes up what an earlier process owed. */
  start(): void;
  /** What is not written by now is owed still. */
  close(): Promise<void>;
};

type Deps = {
  readonly folder: Folder;
  readonly files: FileStore;
  readonly jobs: Pick<JobApi, 'content'>;
  readonly log: Logger;
  readonly user: string;
  /** Tests let the process die there. */
  readonly reached: (moment: string) => void;
};

type Debt = { readonly row: FileRow; readonly rule: Rule };

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

  function note(debt: Debt): Promise<void> {
    debts.set(keyOf(debt.row), debt);
    return files.put({ ...debt.row, user: owner, contentType: debt.rule });
  }

  /** Unless more is owed under the name by now. */
  async function forget(debt: Debt): Promise<void> {
    const key = keyOf(debt.row);
    if (debts.get(key) !== debt) return;
    debts.delete(key);
    await files.remove(owner, debt.row);
  }

  return {
    isOwed: (name) => debts.has(keyOf(name)),
    async take(row, rule, record) {
      const key = keyOf(row);
      const before = debts.get(key);
      if (before && rule !== 'newer') return false;
      const debt = { row, rule };
      try {
        // Both writes begin in the same turn of the event loop: one transaction.
        const [, isRecorded] = await Promise.all([note(debt), record()]);
        deps.reached('folder-owed');
        if (!isRecorded) await forget(debt);
        else await within(PATIENCE_MS, settle(key));
        return isRecorded;
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
export function ownerOf({ id }: Folder): string {
  return `folder ${id}`;
}

async function debtsOf(files: FileStore, owner: string): Promise<Map<string, Debt>> {
  const rows = [...(await files.list(owner, 'input')), ...(await files.list(owner, 'output'))];
  return new Map(rows.map((row) => [keyOf(row), { row, rule: row.contentType as Rule }]));
}

function keyOf({ subfolder, filename }: Name): string {
  return subfolder === '' ? filename : `${subfolder}/${filename}`;
}

/** Returns when nothing is owed any more, which is not to say that it was written. */
async function write(deps: Deps, { row, rule }: Debt, signal: AbortSignal): Promise<void> {
  const { folder } = deps;
  for (const filename of freeNames(row.filename)) {
    const name = { subfolder: row.subfolder, filename };
    const held = await folder.look(name);
    if (held && isFileOf(row, held)) return;
    if (held && rule === 'newer' && Math.round(held.mtimeMs) > row.modifiedAtMs) return;
    const isTaken = rule !== 'newer' && (await folder.isTaken(name));
    const end = isTaken ? 'taken' : await place(deps, { row, rule }, { name, signal });
    if (end !== 'taken') return;
    if (rule === 'theirs') return;
    deps.log.warn({ file: keyOf(name) }, 'another program took the name of an output');
  }
}

type Aim = { readonly name: Name; readonly signal: AbortSignal };

async function place(
  { folder, jobs, log, user }: Deps,
  { row, rule }: Debt,
  { name, signal }: Aim,
): Promise<'placed' | 'taken' | 'gone'> {
  const wanted = { caller: { user }, assetId: row.assetId };
  const content = await unlessStopped(signal, openBytes(jobs, wanted));
  if (!content.ok) {
    if (!isGone(content.error)) throw new Error(content.error.message);
    log.warn({ file: keyOf(name) }, 'a file was gone before it could be written to its folder');
    return 'gone';
  }
  if (content.value.kind === 'redirect') throw new Error('it cannot be read from here');
  const { stream: source, totalBytes } = content.value;
  const abort = (): void => void source.destroy(new Error('the server stops'));
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await folder.place(name, {
      source,
      tag: row.assetId,
      sizeBytes: Number.isFinite(totalBytes) ? totalBytes : undefined,
      modifiedAtMs: row.modifiedAtMs,
      existing: rule === 'newer' ? 'replace' : 'keep',
    });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Waits for an answer, but not when the server stops: what was asked may never answer. */
async function unlessStopped<T>(signal: AbortSignal, answer: Promise<T>): Promise<T> {
  let stop = (): void => {};
  const stopped = new Promise<never>((_, reject) => {
    stop = () => reject(new Error('the server stops'));
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([answer, stopped]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
