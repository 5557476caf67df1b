import { type Json, type JsonObject, isJsonObject, entriesInOrder, objectInOrder } from './json.ts';

// Holdover stores each upload at the upstream in a folder of its own: `holdover-` and 16 hex
// digits, which no other user can guess. An engine behind a service shows such folders to all
// users.

const FOLDER_PREFIX = 'holdover-';

/** Returns the folder of an upload with these digits. */
export function uploadFolder(digits: string): string {
  return FOLDER_PREFIX + digits;
}

/** Matches an upload folder in any case, since some file systems ignore case. */
const FOLDER = /(?<![\w-])holdover-[0-9a-f]{16}(?![\w-])/gi;
/** Matches a file pattern that would match such folders. */
const WILDCARD = /(?<![\w-])holdover-[0-9a-f]*[*?[{]/i;

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
  if (text.length > MAX_CHARS) return [];
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
