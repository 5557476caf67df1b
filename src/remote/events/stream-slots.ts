import type { Clock } from '../../lib/clock.ts';
/** A job that waits for an event stream. */
export type StreamCandidate = {
  /** Lower ranks are first: watched before unwatched, running before queued. */
  readonly rank: () => number;
  /** Called when a slot may be free. */
  readonly wake: () => void;
  /** Called when the stream must be given up for a candidate of lower rank. */
  readonly preempt: () => void;
};

/**
 * The event streams of one upstream. Their number is limited; watched jobs and running jobs get
 * them first.
 */
export interface StreamSlots {
  /** Takes a slot. True: open a stream, and call `release` when it is over. */
  acquire(candidate: StreamCandidate): boolean;
  readonly release: (candidate: StreamCandidate) => void;
  /** Removes a candidate that needs no stream any more, or may open none now. */
  remove(candidate: StreamCandidate): void;
  /**
   * Notes that the upstream opens no more streams for this time. The candidate has released its
   * slot.
   */
  noteLimit(forMs: number): void;
  readonly openCount: () => number;
}

/** The tens digit of a rank says if a client watches the job. */
export const RANK = { unwatched: 10, queued: 1 } as const;

export function createStreamSlots(options: {
  readonly max: number;
  readonly clock: Clock;
}): StreamSlots {
  const holders = new Set<StreamCandidate>();
  const waiting = new Set<StreamCandidate>();
  let knownLimit = options.max;
  let growsAtMs = 0;
  let pauseMs = 0;

  /** Returns the limit. Some time after a refusal, one more stream is tried. */
  function currentLimit(): number {
    if (knownLimit < options.max && options.clock.now() >= growsAtMs) return knownLimit + 1;
    return knownLimit;
  }

  /**
   * True when fewer than `count` waiting candidates precede this one. Equal ranks keep their order
   * of arrival.
   */
  function isAmongFirst(candidate: StreamCandidate, count: number): boolean {
    const rank = candidate.rank();
    let preceding = 0;
    let isLater = false;
    for (const other of waiting) {
      if (preceding >= count) return false;
      if (other === candidate) isLater = true;
      else if (isLater ? other.rank() < rank : other.rank() <= rank) preceding++;
    }
    return preceding < count;
  }

  function preemptLowest(candidate: StreamCandidate): void {
    const worst = firstOf(holders, -1);
    if (worst && worst.rank() > candidate.rank()) worst.preempt();
  }

  function release(candidate: StreamCandidate): void {
    if (holders.delete(candidate)) wakeNext();
  }

  function wakeNext(): void {
    if (holders.size < currentLimit()) firstOf(waiting, 1)?.wake();
  }

  return {
    acquire(candidate) {
      waiting.add(candidate);
      const free = currentLimit() - holders.size;
      if (free <= 0) preemptLowest(candidate);
      if (!isAmongFirst(candidate, Math.max(0, free))) return false;
      waiting.delete(candidate);
      holders.add(candidate);
      // A trial: a refusal lowers the limit again.
      if (holders.size > knownLimit) {
        knownLimit = holders.size;
        growsAtMs = options.clock.now() + pauseMs;
      }
      return true;
    },
    release,
    remove(candidate) {
      if (waiting.delete(candidate)) wakeNext();
      release(candidate);
    },
    noteLimit(forMs) {
      knownLimit = Math.min(knownLimit, holders.size);
      pauseMs = forMs;
      growsAtMs = options.clock.now() + forMs;
    },
    openCount: () => holders.size,
  };
}

/** Returns the first candidate of the lowest rank; with `sign` -1, of the highest. */
function firstOf(candidates: Iterable<StreamCandidate>, sign: 1 | -1): StreamCandidate | undefined {
  let first: { readonly candidate: StreamCandidate; readonly rank: number } | undefined;
  for (const candidate of candidates) {
    const rank = sign * candidate.rank();
    if (!first || rank < first.rank) first = { candidate, rank };
  }
  return first?.candidate;
}
