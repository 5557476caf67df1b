import { addAbortSignal } from 'node:stream';
import type { FileRow } from '../ledger/ledger.ts';
import { untilAborted } from '../lib/concurrency.ts';
import type { Logger } from '../observability/log.ts';
import { freeNames } from '../translate/free-names.ts';
import { pathOf } from '../files/asset-catalog.ts';
import { openContent } from '../files/asset-content.ts';
import { type AssetCalls, isGone } from '../protocol/job-api.ts';
import { type Folder, type FileName, matchesRow } from './folder.ts';

/**
 * The rule for a name that exists. `keep-both`: the file is written under the next name of v1; `theirs`: the file is
 * not written; `newer`: the file with the later modification time is kept.
 */
export type ConflictRule = 'keep-both' | 'theirs' | 'newer';

/** A file that is still to be written to a folder. */
export type PendingFile = { readonly row: FileRow; readonly rule: ConflictRule };

/** Services for writing to a shared folder. */
export type FolderWriteServices = {
  readonly folder: Folder;
  readonly jobs: AssetCalls;
  readonly log: Logger;
  readonly user: string;
};

/** Writes a pending file, or skips it by its rule. Throws when it must be tried again. */
export async function writePendingFile(
  services: FolderWriteServices,
  { row, rule }: PendingFile,
  signal: AbortSignal,
): Promise<void> {
  const { folder } = services;
  for (const filename of freeNames(row.filename)) {
    const name = { subfolder: row.subfolder, filename };
    const existing = await folder.look(name);
    if (existing && matchesRow(row, existing)) return;
    if (existing && rule === 'newer' && Math.round(existing.mtimeMs) > row.modifiedAtMs) return;
    const isTaken = rule !== 'newer' && (await folder.exists(name));
    const target = { name, signal };
    if (!isTaken && (await copyContent(services, { row, rule }, target)) !== 'taken') return;
    if (rule === 'theirs') return;
    const fields = { event: 'shared_folder.name_taken', file: pathOf(name) };
    services.log.warn(fields, 'another program took the name of an output');
  }
}

type WriteTarget = { readonly name: FileName; readonly signal: AbortSignal };

async function copyContent(
  { folder, jobs, log, user }: FolderWriteServices,
  { row, rule }: PendingFile,
  { name, signal }: WriteTarget,
): Promise<'placed' | 'taken' | 'gone'> {
  const wantedAsset = { caller: { user }, assetId: row.assetId };
  // The answer may never arrive.
  const content = await untilAborted(openContent(jobs, wantedAsset), signal);
  if (!content.ok) {
    if (!isGone(content.error)) throw new Error(content.error.message);
    const fields = { event: 'shared_folder.file_gone', file: pathOf(name) };
    log.warn(fields, 'a file was gone before it could be written to its folder');
    await folder.removePartial(name, row.assetId);
    return 'gone';
  }
  if (content.value.kind === 'redirect') throw new Error('it cannot be read from here');
  const { stream: source, totalBytes } = content.value;
  return await folder.place(name, {
    source: addAbortSignal(signal, source),
    tag: row.assetId,
    sizeBytes: Number.isFinite(totalBytes) ? totalBytes : undefined,
    modifiedAtMs: row.modifiedAtMs,
    existing: rule === 'newer' ? 'replace' : 'keep',
  });
}
