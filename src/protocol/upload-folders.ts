import {
  type Json,
  type JsonObject,
  isJsonObject,
  entriesInOrder,
  mapParts,
  objectInOrder,
} from './json.ts';

// A service gets each upload under a content name, its hash and extension, in a folder that no
// other user can guess: `holdover-` and 16 hex digits. An engine behind a service shows both to all
// users, and some services keep one file for equal bytes, so a name must tell nothing.

const FOLDER_PREFIX = 'holdover-';
const HASH_PREFIX = 'blake3:';

/** Returns the folder of an upload with these digits. */
export function uploadFolder(digits: string): string {
  return FOLDER_PREFIX + digits;
}

/** Returns the content name of an upload: the hex digits of its hash, with its extension. */
export function contentName(hash: string, filename: string): string {
  return hash.toLowerCase().replace(HASH_PREFIX, '') + (/\.\w{1,16}$/.exec(filename)?.[0] ?? '');
}

/** Returns the hash in a file name that is a content name. */
export function hashInContentName(filename: string): string | undefined {
  const digits = /^([0-9a-f]{64})(?:\.\w{1,16})?$/.exec(filename)?.[1];
  return digits === undefined ? undefined : HASH_PREFIX + digits;
}

const CONTENT_NAME =
  /(?:holdover-[0-9a-f]{16}(?:\/|\\{1,4}))?(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])(\.\w{1,16})?/g;

/** The names that a user gave to uploads, by hash. */
export type GivenNames = ReadonlyMap<string, string>;

/** True when a value has a text with a content name. */
export function hasContentName(value: Json): boolean {
  return JSON.stringify(value).search(CONTENT_NAME) >= 0;
}

/** Returns the value with given names in place of content names, in all its texts. */
export function withGivenNames(value: Json, names: GivenNames): Json {
  if (typeof value !== 'string') return mapParts(value, (part) => withGivenNames(part, names));
  return value.replaceAll(CONTENT_NAME, (_all, digits: string, extension = '') => {
    const name = names.get(HASH_PREFIX + digits);
    if (name === undefined) return digits + extension;
    if (extension !== '' && name.endsWith(extension)) return name;
    // A node has made another name of it.
    return name.replace(/\.\w{1,16}$/, '') + extension;
  });
}
/** Matches an upload folder in any case, since some file systems ignore case. */
const FOLDER = /(?<![\w-])holdover-[0-9a-f]{16}(?![\w-])/gi;
/** Matches a file pattern that would match such folders. */
const WILDCARD = /(?<![\w-])holdover-[0-9a-f]*[*?[{]/i;

/** Matches every text that may name such a folder in any form. */
const SEARCHED = /[%\\]|holdover-/i;

/** Longer texts are not searched: a picture as base64 is longer than any list of paths. */
const MAX_CHARS = 1024 * 1024;
const MAX_DECODINGS = 3;
const ESCAPES = /%([0-9a-f]{2})|\\u00([0-9a-f]{2})|\\x([0-9a-f]{2})/gi;

/**
 * Returns the upload folders that a text names, in lower case, in any form: a path with slashes or
 * backslashes, annotated (`x [input]`) or percent-encoded. `*` stands for a pattern that matches
 * such folders.
 */
export function uploadFoldersIn(text: string): readonly string[] {
  if (text.length > MAX_CHARS || !SEARCHED.test(text)) return [];
  const found = new Set<string>();
  let decodedText = text;
  for (let times = 0; times <= MAX_DECODINGS; times++) {
    for (const [folder] of decodedText.matchAll(FOLDER)) found.add(folder.toLowerCase());
    if (WILDCARD.test(decodedText)) found.add('*');
    const next = decodedOnce(decodedText);
    if (next === decodedText) break;
    decodedText = next;
  }
  return [...found];
}

/** Returns the value without the list entries and members that name such folders. */
export function withoutUploadFolders(value: Json): Json {
  if (Array.isArray(value)) {
    const items = value as readonly Json[];
    return items.filter((item) => !isFolderReference(item)).map(withoutUploadFolders);
  }
  if (!isJsonObject(value)) return value;
  const kept = entriesInOrder(value as JsonObject).filter(
    ([name, member]) => !isFolderReference(name) && !isFolderReference(member),
  );
  return objectInOrder(kept.map(([name, member]) => [name, withoutUploadFolders(member)] as const));
}

function isFolderReference(value: Json): boolean {
  return typeof value === 'string' && uploadFoldersIn(value).length > 0;
}

function decodedOnce(text: string): string {
  if (!/[%\\]/.test(text)) return text;
  return text.replaceAll(ESCAPES, (_all, ...codes: (string | undefined)[]) =>
    String.fromCharCode(Number.parseInt(codes.slice(0, 3).find(Boolean) ?? '20', 16)),
  );
}
