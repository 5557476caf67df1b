import { LRUCache } from 'lru-cache';
import { createTextRemover } from './remove-texts.ts';

/** A shorter text is no key, and may be a part of any word. */
const MIN_SECRET_CHARS = 6;
/** The memory for all spellings. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The assumed memory of a secret beside its characters. */
const ENTRY_BYTES = 500;

/** Removes known secrets from texts that are written for people. They are in memory only. */
export class SecretRedactor {
  readonly #ownSpellings: readonly string[];
  readonly #spellings = new LRUCache<string, readonly string[]>({
    maxSize: MAX_BYTES,
    sizeCalculation: sizeOf,
  });
  #remove: ((text: string) => string) | undefined;

  /** `ownSecrets` are never forgotten; of the others the latest are known. */
  constructor(ownSecrets: readonly (string | undefined)[] = []) {
    this.#ownSpellings = ownSecrets.flatMap((secret) => spellingsOf(secret) ?? []);
  }

  /** Remembers a secret of a caller. A caller must have been accepted, or its keys displace those of others. */
  add(secret: string | undefined): void {
    if (secret === undefined || this.#spellings.get(secret)) return;
    const found = spellingsOf(secret);
    if (!found) return;
    this.#spellings.set(secret, found);
    this.#remove = undefined;
  }

  /** Returns the text without any known secret, as it is, URL-encoded or in JSON. */
  redact(text: string): string {
    this.#remove ??= createTextRemover([this.#ownSpellings, ...this.#spellings.values()].flat());
    return this.#remove(text);
  }

  /**
   * The JSON text of a value without any known secret in its texts; members of these names stay. A caller may
   * present a key that is a part of JSON, or one of Holdover's own words.
   */
  redactedJson(value: object, kept?: ReadonlySet<string>): string {
    return JSON.stringify(value, (name, member: unknown) =>
      typeof member !== 'string' || kept?.has(name) ? member : this.redact(member),
    );
  }
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
