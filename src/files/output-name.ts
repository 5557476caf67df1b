import { posix } from 'node:path';
import { parseAnnotation, safeFolder, safeName, splitPath } from './safe-name.ts';

/** Where an output is found, in v1's terms. */
export type FileLocation = { readonly subfolder: string; readonly filename: string };

const MAX_STEM_CHARS = 100;

/**
 * The name an upstream gives an output, as one that `/view` finds: a folder in the name is a folder,
 * and what no file system or header could hold, or v1 reads as something else, is written otherwise.
 */
export function locationOf(name: string, folder = ''): FileLocation {
  const path = splitPath(name.replaceAll('\\', '/'));
  const subfolder = posix.join(folder, path.folder);
  return {
    subfolder: subfolder === '.' ? '' : (safeFolder(subfolder) ?? ''),
    filename: isSafeOutputName(path.name) ? path.name : sanitized(path.name),
  };
}

/** v1 refuses two dots in a row, and reads a folder in brackets at the end. */
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
  const plain = stem.replaceAll(/\.{2,}/g, '_').replaceAll(/^\.+|[. ]+$/g, '');
  return `_${plain.slice(0, MAX_STEM_CHARS)}${extension}`;
}
