import { type Clock, monotonicClock } from '../lib/clock.ts';
import type { Blobs } from './blobs.ts';

/** A bucket charges for each list, and only a killed process leaves anything to find. */
const LIST_EVERY_MS = 6 * 60 * 60_000;

/**
 * Returns blobs that search for leftovers of killed processes at the first sweep, and then some
 * times a day. In between, the lists are empty. Bytes that the ledger releases are always removed
 * at once.
 */
export function listLeftoversRarely(
  blobs: Blobs,
  clock: Pick<Clock, 'now'> = monotonicClock,
): Blobs {
  const isUnrecordedDue = every(clock);
  const isAsideDue = every(clock);
  const isAbandonedDue = every(clock);
  return {
    ...blobs,
    async *listUnrecorded() {
      if (isUnrecordedDue()) yield* blobs.listUnrecorded();
    },
    async *listAside() {
      if (isAsideDue()) yield* blobs.listAside();
    },
    async removeAbandoned() {
      if (isAbandonedDue()) await blobs.removeAbandoned();
    },
  };
}

function every(clock: Pick<Clock, 'now'>): () => boolean {
  let nextMs = -Infinity;
  return () => {
    if (clock.now() < nextMs) return false;
    nextMs = clock.now() + LIST_EVERY_MS;
    return true;
  };
}
