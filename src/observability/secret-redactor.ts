import { LRUCache } from 'lru-cache';

/** Removes known secrets from texts that are written for people. They are in memory only. */
export type SecretRedactor = ReturnType<typeof createSecretRedactor>;

/** A shorter text is no key, and may be a part of any word. */
const MIN_SECRET_CHARS = 6;
const MAX_SECRETS = 1000;
const REMOVED = '[removed]';

export function createSecretRedactor() {
  const spellings = new LRUCache<string, readonly string[]>({ max: MAX_SECRETS });
  return {
    add(secret: string | undefined): void {
      if (secret === undefined || secret.length < MIN_SECRET_CHARS) return;
      const inJson = JSON.stringify(secret).slice(1, -1);
      spellings.set(secret, [...new Set([secret, encodeURIComponent(secret), inJson])]);
    },
    /** The text without any known secret, as it is, URL-encoded or in JSON. */
    redact: (text: string): string =>
      [...spellings.values()]
        .flat()
        .reduce((shown, spelling) => shown.replaceAll(spelling, REMOVED), text),
  };
}
