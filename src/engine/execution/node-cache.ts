import { LRUCache } from 'lru-cache';
import type { Value } from '../../nodes/node.ts';
import { buffersOf, bytesOfText } from './memory-meter.ts';
import type { StoredOutput } from '../jobs/worker-protocol.ts';

/**
 * The result of one node: the value of each output slot, the values that the node shows, and the
 * files that it made.
 */
export type NodeRecord = {
  readonly slots: readonly Value[];
  readonly uiJson?: string | undefined;
  readonly outputs: readonly StoredOutput[];
};

/** Results by node signature. */
export type NodeRecords = Map<string, NodeRecord>;

/**
 * Keeps the results of each user's previous prompt, and of no earlier one, as v1 does. Its thread
 * runs one job at a time: each `take` is followed by the `put` of the same job.
 */
export interface NodeCache {
  take(user: string): NodeRecords;
  put(user: string, records: NodeRecords): void;
  /** Drops the results of a user, and those that a running job of the user is about to store. */
  forget(user: string): void;
}

/** The size that a value without pixels and text counts for. It only has to be above zero. */
const OVERHEAD_BYTES = 1024;

/** Above `maxBytes`, the results of the users who have been idle for longest are dropped. */
export function createNodeCache({ maxBytes }: { readonly maxBytes: number }): NodeCache {
  const users = new LRUCache<string, NodeRecords>({
    maxSize: Math.max(1, maxBytes),
    sizeCalculation: sizeOf,
  });
  /** The user of the running job; `undefined` when its results are to be dropped. */
  let current: string | undefined;
  return {
    take(user) {
      const records = users.get(user) ?? new Map();
      users.delete(user);
      current = user;
      return records;
    },
    put(user, records) {
      if (current === user) users.set(user, records);
    },
    forget(user) {
      users.delete(user);
      if (current === user) current = undefined;
    },
  };
}

function sizeOf(records: NodeRecords): number {
  const all = [...records.values()];
  const values = all.flatMap((record) => record.slots);
  // A text that several nodes pass on is in memory once, but counts for each node.
  const texts = [...values, ...all.map(({ uiJson }) => uiJson)];
  const textBytes = texts.map((text) => (typeof text === 'string' ? bytesOfText(text) : 0));
  const pixelBytes = Array.from(buffersOf(values), ({ byteLength }) => byteLength);
  const overhead = OVERHEAD_BYTES * (1 + values.length);
  return [...pixelBytes, ...textBytes].reduce((sum, bytes) => sum + bytes, overhead);
}
