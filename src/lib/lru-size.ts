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
