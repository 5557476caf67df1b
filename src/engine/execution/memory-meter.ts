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
  const counted = new Set<ArrayBufferLike>();
  let heldBytes = 0;
  let reservedBytes = 0;
  return {
    reserve(bytes) {
      const used = heldBytes + reservedBytes;
      if (used + bytes > limitBytes)
        throw new OutOfMemory(
          `Allocation of ${mib(bytes)} failed: this job already holds ${mib(used)} of its ${mib(limitBytes)}`,
        );
      reservedBytes += bytes;
    },
    settle(values) {
      reservedBytes = 0;
      for (const buffer of buffersOf(values)) {
        if (counted.has(buffer)) continue;
        counted.add(buffer);
        heldBytes += buffer.byteLength;
      }
      for (const value of values) heldBytes += typeof value === 'string' ? bytesOfText(value) : 0;
    },
  };
}

/** Returns the bytes that a text counts for. */
export function bytesOfText(text: string): number {
  return text.length * BYTES_PER_CHAR;
}

/** Returns the distinct buffers behind some values. */
export function buffersOf(values: readonly Value[]): ReadonlySet<ArrayBufferLike> {
  return new Set(values.filter(isPixels).map(({ data }) => data.buffer));
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
