import { totalmem } from 'node:os';

/** Returns the memory of the container, or of the machine where no container limits it. */
export function totalMemoryBytes(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Infinity);
}
