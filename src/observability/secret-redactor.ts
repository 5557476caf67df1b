import { LRUCache } from 'lru-cache';
import { createTextRemover } from './remove-texts.ts';

/** Removes known secrets from texts that are written for people. They are in memory only. */
export type SecretRedactor = ReturnType<typeof createSecretRedactor>;

/** A shorter text is no key, and may be a part of any word. */
const MIN_SECRET_CHARS = 6;
/** The memory for all spellings. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The assumed memory of a secret beside its characters. */
const ENTRY_BYTES = 500;

/** `ownSecrets` are never forgotten; of the others the latest are known. */
export function createSecretRedactor(ownSecrets: readonly (string | undefined)[] = []) {
  const ownSpellings = ownSecrets.flatMap((secret) => spellingsOf(secret) ?? []);
  const spellings = new LRUCache<string, readonly string[]>({
    maxSize: MAX_BYTES,
    sizeCalculation: sizeOf,
  });
  let remove: ((text: string) => string) | undefined;

  /** Returns the text without any known secret, as it is, URL-encoded or in JSON. */
  function redact(text: string): string {
    remove ??= createTextRemover([ownSpellings, ...spellings.values()].flat());
    return remove(text);
  }

  return {
    /** Remembers a secret of a caller. A caller must have been accepted, or its keys displace those of others. */
    add(secret: string | undefined): void {
      if (secret === undefined || spellings.get(secret)) return;
      const found = spellingsOf(secret);
      if (!found) return;
      spellings.set(secret, found);
      remove = undefined;
    },
    redact,
    /**
     * The JSON text of a value without any known secret in its texts; members of these names stay. A caller may
     * present a key that is a part of JSON, or one of Holdover's own words.
     */
    redactedJson: (value: object, kept?: ReadonlySet<string>): string =>
      JSON.stringify(value, (name, member: unknown) =>
        typeof member !== 'string' || kept?.has(name) ? member : redact(member),
      ),
  };
}

/** A character may need two bytes. */
function sizeOf(spellings: readonly string[]): number {
  return ENTRY_BYTES + 2 * spellings.join('').length;
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** As it is, URL-encoded and in JSON; `undefined` for none. */
function spellingsOf(secret: string | undefined): readonly string[] | undefined {
  if (secret === undefined || secret.length < MIN_SECRET_CHARS) return undefined;
  return [...new Set([secret, urlEncoded(secret), inJson(secret)])];
}

/** A text from JSON may have half a character, which cannot be encoded: it is sent as U+FFFD. */
function urlEncoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}
