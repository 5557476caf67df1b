import { LRUCache } from 'lru-cache';
import type { Value } from '../../nodes/node.ts';
import { buffersOf, textBytes } from './memory-meter.ts';
import type { StoredOutput } from '../jobs/worker-protocol.ts';

/**
 * The result of one node: a list of values per output slot, what the node shows, and the files it
 * made.
 */
export type NodeRecord = {
  readonly slots: readonly (readonly Value[])[];
  readonly uiJson?: string;
  readonly outputs: readonly StoredOutput[];
};

/** Results by node signature. */
export type NodeRecords = Map<string, NodeRecord>;

/** Keeps the results of each user's previous prompt, and of no earlier one, as v1 does. */
export type NodeCache = ReturnType<typeof createNodeCache>;

/** Counted for a value that is neither pixels nor text; it only has to be more than nothing. */
const OVERHEAD_BYTES = 1024;

/** Beyond `maxBytes` the results of the users idle for longest are dropped. */
export function createNodeCache({ maxBytes }: { readonly maxBytes: number }) {
  const users = new LRUCache<string, NodeRecords>({
    maxSize: Math.max(1, maxBytes),
    sizeCalculation: sizeOf,
  });
  /** Users whose results a running job has, and those of them whose results are to be dropped at its end. */
  const inUse = new Set<string>();
  const toDrop = new Set<string>();
  return {
    take(user: string): NodeRecords {
      const records = users.get(user) ?? new Map();
      users.delete(user);
      inUse.add(user);
      return records;
    },
    put(user: string, records: NodeRecords): void {
      inUse.delete(user);
      if (!toDrop.delete(user)) users.set(user, records);
    },
    /** Drops what is kept for a user, and what a running job of the user is about to put. */
    forget(user: string): void {
      users.delete(user);
      if (inUse.has(user)) toDrop.add(user);
    },
  };
}

function sizeOf(records: NodeRecords): number {
  const all = [...records.values()];
  const values = all.flatMap((record) => record.slots.flat());
  const pixelBytes = sum(buffersOf(values).values());
  // A text that several nodes pass on is in memory once, but counts for each.
  const textsBytes = sum(values.map((value) => (typeof value === 'string' ? textBytes(value) : 0)));
  const shownBytes = sum(all.map(({ uiJson }) => textBytes(uiJson ?? '')));
  return pixelBytes + textsBytes + shownBytes + OVERHEAD_BYTES * (1 + values.length);
}

function sum(numbers: Iterable<number>): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
