/**
 * Options of an `LRUCache` with at most this many entries. Its own `max` allocates memory for all
 * of them at once, 16 bytes and more for each; this option allocates for existing entries only.
 */
export function atMost(entries: number): {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
} {
  return { maxSize: entries, sizeCalculation: one };
}

const one = (): number => 1;

/** The assumed memory of an entry beside the characters of its name and its text. */
const ENTRY_BYTES = 100;

/** Options of an `LRUCache` whose names and texts take at most this memory. Text has one byte or two per character. */
export function bytesAtMost(bytes: number): {
  readonly maxSize: number;
  readonly sizeCalculation: (value: unknown, name: string) => number;
} {
  return {
    maxSize: bytes,
    sizeCalculation: (value, name) =>
      ENTRY_BYTES + 2 * (name.length + (typeof value === 'string' ? value.length : 0)),
  };
}
