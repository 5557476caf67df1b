/** A longer text is found by pieces of this length, so that a part of it is found, too. */
const PIECE_CHARS = 32;
const REMOVED = '[removed]';

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
export function createTextRemover(texts: Iterable<string>): (text: string) => string {
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
