import { LRUCache } from 'lru-cache';
import { REMOVED } from '../protocol/url-credentials.ts';

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
    // A character may need two bytes.
    sizeCalculation: (spellings) => ENTRY_BYTES + 2 * spellings.join('').length,
  });
  #remove: ((text: string) => string) | undefined;

  /** `ownSecrets` are never forgotten; of the others the latest are known. */
  constructor(ownSecrets: readonly (string | undefined)[] = []) {
    this.#ownSpellings = ownSecrets.flatMap(spellingsOf);
  }

  /** Remembers a secret of a caller. A caller must have been accepted, or its keys displace those of others. */
  add(secret: string | undefined): void {
    if (secret === undefined || this.#spellings.get(secret)) return;
    const found = spellingsOf(secret);
    if (found.length === 0) return;
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

/** Returns the text without this secret, as it is, URL-encoded or in JSON. */
export function withoutSecret(text: string, secret: string | undefined): string {
  return createTextRemover(spellingsOf(secret))(text);
}

/** As it is, URL-encoded and in JSON. */
function spellingsOf(secret = ''): readonly string[] {
  if (secret.length < MIN_SECRET_CHARS) return [];
  // A text from JSON may have half a character, which cannot be encoded: it is sent as U+FFFD.
  const urlEncoded = encodeURIComponent(Buffer.from(secret).toString());
  return [...new Set([secret, urlEncoded, JSON.stringify(secret).slice(1, -1)])];
}

/** A longer text is found by pieces of this length, so that a part of it is found, too. */
const PIECE_CHARS = 32;

/** The pieces of one length. */
type Pieces = {
  readonly length: number;
  readonly texts: ReadonlySet<string>;
  /** Has a 1 in the slot of each piece, and 0 in most others. Its size is a power of two. */
  readonly filter: Uint8Array;
};

/** Odd, and not known to callers: they cannot choose texts with the same hash. */
const FACTOR = Math.floor(Math.random() * 2 ** 30) * 4 + 3;
/** Spreads the hashes of similar texts over the slots. */
const SPREAD = 0x9e3779b1;

/**
 * Returns a function that removes the given texts from another one. It reads that once for each length of up to 32
 * characters among them, however many there are: a rolling hash (Rabin and Karp) finds the places to compare.
 *
 * An Aho-Corasick automaton (`modern-ahocorasick` 3.3.0) must be built anew for each new text: with 2 MB of them in 0.4
 * seconds, with 80 MB of memory. `replaceAll` needs up to a second for one hostile text.
 */
function createTextRemover(texts: Iterable<string>): (text: string) => string {
  const byLength = new Map<number, Set<string>>();
  for (const text of texts) {
    const length = Math.min(text.length, PIECE_CHARS);
    const pieces = byLength.get(length) ?? new Set();
    byLength.set(length, pieces);
    for (let at = 0; at < text.length; at += length) {
      const start = Math.min(at, text.length - length);
      pieces.add(text.slice(start, start + length));
    }
  }
  const longestFirst = [...byLength].toSorted(([a], [b]) => b - a);
  const all = longestFirst.map(([length, pieces]) => toPieces(length, pieces));
  return (text) => all.reduce(withoutPieces, text);
}

function toPieces(length: number, texts: ReadonlySet<string>): Pieces {
  const filter = new Uint8Array(2 ** (36 - Math.clz32(texts.size + 2 ** 8)));
  for (const text of texts) {
    let hash = 0;
    for (let at = 0; at < length; at++) hash = (Math.imul(hash, FACTOR) + text.charCodeAt(at)) | 0;
    filter[Math.imul(hash, SPREAD) >>> Math.clz32(filter.length - 1)] = 1;
  }
  return { length, texts, filter };
}

/** Removes each run of pieces that touch or overlap. */
function withoutPieces(text: string, { length, texts, filter }: Pieces): string {
  const shift = Math.clz32(filter.length - 1);
  let power = 1;
  for (let i = 0; i < length; i++) power = Math.imul(power, FACTOR);
  let shown = '';
  let removedTo = -1;
  let hash = 0;
  for (let end = 1; end <= text.length; end++) {
    const start = end - length;
    hash = (Math.imul(hash, FACTOR) + text.charCodeAt(end - 1)) | 0;
    if (start > 0) hash = (hash - Math.imul(power, text.charCodeAt(start - 1))) | 0;
    if (start < 0 || filter[Math.imul(hash, SPREAD) >>> shift] === 0) continue;
    if (!texts.has(text.slice(start, end))) continue;
    if (start > removedTo) shown += text.slice(Math.max(removedTo, 0), start) + REMOVED;
    removedTo = end;
  }
  return removedTo < 0 ? text : shown + text.slice(removedTo);
}
