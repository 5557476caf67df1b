import { BYTES_PER_CHAR, OutOfMemory, type Value } from '../../nodes/node.ts';
import { isPixels } from '../../nodes/tensor.ts';

/**
 * Limits the memory of a job: the reservations of the running call, and the pixels and texts that
 * finished calls returned. A text counts for each call that returned it.
 */
export interface MemoryMeter {
  reserve(bytes: number): void;
  /** Ends a call: its reservations are replaced by the buffers and texts that it returned. */
  settle(values: readonly Value[]): void;
}

/** Starts an empty meter. */
export function createMemoryMeter(limitBytes: number): MemoryMeter {
  const counted = new Set<object>();
  let heldBytes = 0;
  let reservedBytes = 0;
  return {
    reserve(bytes) {
      if (heldBytes + reservedBytes + bytes > limitBytes)
        throw outOfMemory(heldBytes + reservedBytes, bytes, limitBytes);
      reservedBytes += bytes;
    },
    settle(values) {
      reservedBytes = 0;
      for (const [buffer, bytes] of buffersOf(values)) {
        if (counted.has(buffer)) continue;
        counted.add(buffer);
        heldBytes += bytes;
      }
      for (const value of values) heldBytes += typeof value === 'string' ? bytesOfText(value) : 0;
    },
  };
}

/** Returns the bytes that a text counts for. */
export function bytesOfText(text: string): number {
  return text.length * BYTES_PER_CHAR;
}

/** Returns the distinct buffers behind some values, and the bytes of each. */
export function buffersOf(values: Iterable<Value>): ReadonlyMap<object, number> {
  const buffers = new Map<object, number>();
  for (const value of values) {
    if (isPixels(value)) buffers.set(value.data.buffer, value.data.buffer.byteLength);
  }
  return buffers;
}

function outOfMemory(used: number, wanted: number, limit: number): OutOfMemory {
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return new OutOfMemory(
    `Allocation of ${mib(wanted)} failed: this job already holds ${mib(used)} of its ${mib(limit)}`,
  );
}
