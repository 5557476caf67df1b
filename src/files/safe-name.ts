import { posix } from 'node:path';
import type { FileType, FilePlace } from '../ledger/ledger.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { ANNOTATED_NAME, MAX_FOLDER_BYTES, MAX_NAME_BYTES } from '../protocol/v1.ts';

/** Names that Windows gives to devices, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/**
 * Matches line ends, direction overrides, surrogate halves, and the character that stands for
 * broken UTF-8.
 */
const UNPRINTABLE = /[\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffd]/u;

/** Matches a separator of either kind, and the mark of a Windows file stream. */
const PATH_LIKE = /[\\/]|::/;

export const FILE_TYPES = ['output', 'input', 'temp'] as const satisfies readonly FileType[];

/** True when v1 has a folder with this name. */
export function isFileType(type: string): type is FileType {
  return (FILE_TYPES as readonly string[]).includes(type);
}

/**
 * Returns the name if every file system can hold it, and if it cannot mislead a header or a
 * terminal.
 */
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

/** Returns the part of a path with `_` in place of what some file system cannot hold. */
export function safePart(part: string): string {
  if (part === '' || part === '.' || part === '..' || safeName(part) !== undefined) return part;
  return Array.from(part, (char) => (isUnsafeChar(char) ? '_' : char))
    .join('')
    .replaceAll('::', '__')
    .replace(/^\.+|(?<![. ])[. ]+$/g, (cut) => '_'.repeat(cut.length))
    .replace(DEVICE, '$1_$2');
}

function isUnsafeChar(char: string): boolean {
  return UNPRINTABLE.test(char) || hasControlCharacter(char);
}

/** Returns the folder in one form if every part of it is a safe name; `''` is the root. */
export function safeFolder(folder: string): string | undefined {
  const resolvedFolder = withinRoot(folder);
  if (resolvedFolder === undefined || Buffer.byteLength(folder) > MAX_FOLDER_BYTES)
    return undefined;
  if (resolvedFolder === '') return '';
  return resolvedFolder.split('/').every((part) => safeName(part) !== undefined)
    ? resolvedFolder
    : undefined;
}

/**
 * Resolves `.` and `..` as v1 does, and drops a trailing slash. `undefined` when the result is
 * outside the root.
 */
export function withinRoot(folder: string): string | undefined {
  if (folder.startsWith('/') || folder.includes('\\')) return undefined;
  const resolved = posix.normalize(folder).replace(/\/$/, '');
  if (resolved === '..' || resolved.startsWith('../')) return undefined;
  return resolved === '.' ? '' : resolved;
}

/** Splits `sub/m.png [input]` into the name and the folder that it asks for. */
export function parseAnnotation(value: string): {
  readonly name: string;
  readonly type?: FileType;
} {
  const [, name, type] = ANNOTATED_NAME.exec(value) ?? [];
  return name === undefined ? { name: value } : { name, type: type as FileType };
}

/** Splits a path at its last slash. A name without a slash is in the folder `''`. */
export function splitPath(path: string): { readonly folder: string; readonly name: string } {
  const slash = path.lastIndexOf('/');
  return { folder: path.slice(0, Math.max(slash, 0)), name: path.slice(slash + 1) };
}

/**
 * Returns the path of an upload at the upstream. It is always below `input/`, since v2 chooses the
 * place of other files. Only inputs may be found by their name.
 */
export function uploadPathOf({ type, subfolder, filename }: FilePlace): string {
  return posix.join('input', type === 'input' ? '' : type, subfolder, filename);
}
