/**
 * Options of an `LRUCache` with at most so many entries. Its own `max` allocates room for all of them at once, 16 bytes
 * and more for each; this one for those that there are.
 */
export function atMost(entries: number): {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
} {
  return { maxSize: entries, sizeCalculation: one };
}

const one = (): number => 1;
