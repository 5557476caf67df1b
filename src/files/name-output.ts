import { posix } from 'node:path';
import type { FileRow, FileStore } from '../ledger/ledger.ts';
import { freeNames } from '../translate/free-names.ts';
import { isSameEngineFile } from '../protocol/engine-file.ts';
import type { Output } from '../protocol/v2.ts';
import type { FileRef } from '../protocol/v1.ts';
import { parseAnnotation, safeFolder, safeName, safePart, splitPath } from './safe-name.ts';

/**
 * Gives a v2 output its v1 file name, unique for its user: the name that it came with or, when
 * other bytes have that name, the next number of v1's counter. The same output keeps its name. A
 * crash may lose the name; the job then gets it again, since history is written later.
 */
export async function nameOutput(
  files: FileStore,
  user: string,
  output: Output,
  nowMs: number,
): Promise<FileRef> {
  const known = await files.byAsset(user, output.id);
  if (known) return toFileRef(known);
  const location = locationOf(output.name, output.x_subfolder);
  const type = output.x_temp ? 'temp' : 'output';
  const existing = await files.get(user, { type, ...location });
  // A run that took its results from the cache lists the same file.
  if (existing && isSameEngineFile(existing.assetId, output.id)) {
    await files.put({ ...existing, assetId: output.id }, 'soon');
    return toFileRef(existing);
  }
  for (const filename of freeNames(location.filename)) {
    const row: FileRow = {
      user,
      type,
      subfolder: location.subfolder,
      filename,
      assetId: output.id,
      hash: output.hash,
      sizeBytes: output.size_bytes,
      contentType: output.content_type,
      modifiedAtMs: nowMs,
    };
    if (await files.claim(row, 'soon')) return toFileRef(row);
  }
  throw new Error('file names never run out');
}

function toFileRef({ filename, subfolder, type }: FileRow): FileRef {
  return { filename, subfolder, type };
}

const MAX_STEM_CHARS = 100;

/**
 * Turns the name that an upstream gives an output into one that `/view` finds. A folder in the name
 * stays a folder. Parts that no file system or header could hold, or that v1 reads differently, are
 * replaced.
 */
export function locationOf(name: string, folder = ''): Omit<FileRef, 'type'> {
  const path = splitPath(posix.join(folder, name).replaceAll('\\', '/'));
  return {
    subfolder: safeFolder(path.folder.split('/').map(safePart).join('/')) ?? '',
    filename: isSafeOutputName(path.name) ? path.name : sanitized(path.name),
  };
}

/**
 * False for two dots in a row, which v1 refuses, and for a folder in brackets at the end, which v1
 * reads.
 */
function isSafeOutputName(name: string): boolean {
  return (
    safeName(name) !== undefined && !name.includes('..') && parseAnnotation(name).type === undefined
  );
}

function sanitized(name: string): string {
  const base = name.replaceAll(/[^\p{L}\p{N}._ ()-]/gu, '_');
  const { ext } = posix.parse(base);
  const extension = /^\.\w{1,16}$/.test(ext) ? ext : '';
  const stem = base.slice(0, base.length - extension.length);
  const plain = stem
    .replaceAll(/\.{2,}/g, '_')
    .replace(/^\.+/, '')
    .replace(/(?<![. ])[. ]+$/, '');
  return `_${plain.slice(0, MAX_STEM_CHARS)}${extension}`;
}
