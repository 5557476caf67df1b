import type { FileRow } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { freeNames } from '../translate/names.ts';
import { openBytes } from '../v1/whole-file.ts';
import { type JobApi, isGone } from '../wire/jobs.ts';
import { type Folder, type Name, isFileOf } from './folder.ts';

/**
 * What to do where something has the name already. `keep-both`: the file is written under v1's
 * next name; `theirs`: it is not written; `newer`: the one that was changed last stays.
 */
export type Rule = 'keep-both' | 'theirs' | 'newer';

/** A file a folder is owed. */
export type Debt = { readonly row: FileRow; readonly rule: Rule };

/** What writing needs of the house. */
export type WriteDeps = {
  readonly folder: Folder;
  readonly jobs: Pick<JobApi, 'content'>;
  readonly log: Logger;
  readonly user: string;
};

/** What a name is called among those that are owed. */
export function keyOf({ subfolder, filename }: Name): string {
  return subfolder === '' ? filename : `${subfolder}/${filename}`;
}

/** Writes what is owed; returns when nothing is any more, which is not to say that it was written. */
export async function write(
  deps: WriteDeps,
  { row, rule }: Debt,
  signal: AbortSignal,
): Promise<void> {
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
  { folder, jobs, log, user }: WriteDeps,
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
