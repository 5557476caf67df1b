import { posix } from 'node:path';
import type { FileType, FileRow } from '../ledger/ledger.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { ANNOTATED_NAME } from '../protocol/v1.ts';

const MAX_NAME_BYTES = 255;
const MAX_FOLDER_BYTES = 1024;

/** Names Windows gives to devices, whatever the extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/** Line ends, direction overrides, half characters, and what broken UTF-8 decodes to. */
const UNPRINTABLE = /[\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]/u;

/** Separators of either kind, and the mark of a Windows file stream. */
const PATH_LIKE = /[\\/]|::/;

const FILE_TYPES: ReadonlySet<string> = new Set(['input', 'output', 'temp'] satisfies FileType[]);

/** True when v1 has a folder of that name. */
export function isFileType(type: string): type is FileType {
  return FILE_TYPES.has(type);
}

/** The name itself when any file system could hold it and no header or terminal is fooled by it. */
export function safeName(name: string): string | undefined {
  const isUnsafe =
    name === '' ||
    Buffer.byteLength(name) > MAX_NAME_BYTES ||
    name.startsWith('.') ||
    /[. ]$/.test(name) ||
    DEVICE.test(name) ||
    PATH_LIKE.test(name) ||
    UNPRINTABLE.test(name) ||
    hasControlCharacter(name);
  return isUnsafe ? undefined : name;
}

/** The folder in one spelling when every part of it is a safe name; `''` is the root. */
export function safeFolder(folder: string): string | undefined {
  const resolvedFolder = withinRoot(folder);
  if (resolvedFolder === undefined || Buffer.byteLength(folder) > MAX_FOLDER_BYTES)
    return undefined;
  if (resolvedFolder === '') return '';
  return resolvedFolder.split('/').every((part) => safeName(part) !== undefined)
    ? resolvedFolder
    : undefined;
}

/** v1 resolves `.` and `..`, and drops a trailing slash; `undefined` when that leaves the root. */
export function withinRoot(folder: string): string | undefined {
  if (folder.startsWith('/') || folder.includes('\\')) return undefined;
  const resolved = posix.normalize(folder).replace(/\/$/, '');
  if (resolved === '..' || resolved.startsWith('../')) return undefined;
  return resolved === '.' ? '' : resolved;
}

/** Parts `sub/m.png [input]` into the name and the folder it asks for. */
export function parseAnnotation(value: string): {
  readonly name: string;
  readonly type?: FileType;
} {
  const [, name, type] = ANNOTATED_NAME.exec(value) ?? [];
  return name === undefined ? { name: value } : { name, type: type as FileType };
}

/** Parts a path at its last slash; a bare name lies in `''`. */
export function splitPath(path: string): { readonly folder: string; readonly name: string } {
  const slash = path.lastIndexOf('/');
  return { folder: path.slice(0, Math.max(slash, 0)), name: path.slice(slash + 1) };
}

/**
 * The path an upload is known by upstream. Below `input/` whatever it is: v2 places files of other
 * roots. Only inputs may be found by their name.
 */
export function uploadPathOf({
  type,
  subfolder,
  filename,
}: Pick<FileRow, 'type' | 'subfolder' | 'filename'>): string {
  return posix.join('input', type === 'input' ? '' : type, subfolder, filename);
}
