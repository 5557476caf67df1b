import { LRUCache } from 'lru-cache';

/** Removes known secrets from texts that are written for people. They are in memory only. */
export type SecretRedactor = ReturnType<typeof createSecretRedactor>;

/** A shorter text is no key, and may be a part of any word. */
const MIN_SECRET_CHARS = 6;
const MAX_SECRETS = 1000;
const REMOVED = '[removed]';

/** `ownSecrets` are never forgotten; of the others the latest are known. */
export function createSecretRedactor(ownSecrets: readonly (string | undefined)[] = []) {
  const ownSpellings = ownSecrets.flatMap((secret) => spellingsOf(secret) ?? []);
  const spellings = new LRUCache<string, readonly string[]>({ max: MAX_SECRETS });
  const known = (): readonly string[] => [ownSpellings, ...spellings.values()].flat();
  return {
    add(secret: string | undefined): void {
      if (secret === undefined || spellings.get(secret)) return;
      const found = spellingsOf(secret);
      if (found) spellings.set(secret, found);
    },
    /** The text without any known secret, as it is, URL-encoded or in JSON. */
    redact: (text: string): string => withoutAny(text, known()),
    /**
     * The JSON text of a value without any known secret in its texts; members of these names stay. A caller may
     * present a key that is a part of JSON, or one of Holdover's own words.
     */
    redactedJson(value: object, kept?: ReadonlySet<string>): string {
      const text = JSON.stringify(value);
      const found = known().filter((spelling) => text.includes(inJson(spelling)));
      if (found.length === 0) return text;
      return JSON.stringify(value, (name, member: unknown) =>
        typeof member !== 'string' || kept?.has(name) ? member : withoutAny(member, found),
      );
    },
  };
}

function withoutAny(text: string, spellings: readonly string[]): string {
  return spellings.reduce((shown, spelling) => shown.replaceAll(spelling, REMOVED), text);
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
export function urlEncoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString());
}
