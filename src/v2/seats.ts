/** One who would like an event stream. */
export type Candidate = {
  /** Lower goes first: watched before unwatched, running before queued. */
  readonly rank: () => number;
  /** Told when a stream may be had. */
  readonly wake: () => void;
  /** Told to give its stream up to someone of a lower rank. */
  readonly yieldSeat: () => void;
};

/** The event streams of one upstream: so many at a time, given to the jobs somebody watches, and to running ones. */
export type Seats = {
  /** True: open a stream, and call `leave` when it is over. */
  take(candidate: Candidate): boolean;
  leave(candidate: Candidate): void;
  /** No longer interested. */
  forget(candidate: Candidate): void;
  /** The upstream has no more streams for us for so long; the candidate has left its seat. */
  crowded(forMs: number): void;
  readonly open: () => number;
};

/** Whether somebody watches is in the rank's tens. */
export const RANK = { unwatched: 10, queued: 1 } as const;

export function createSeats(options: {
  readonly max: number;
  readonly clock: () => number;
}): Seats {
  const seated = new Set<Candidate>();
  const waiting = new Set<Candidate>();
  let learned = options.max;
  let growsAtMs = 0;
  let pauseMs = 0;

  /** After a refusal one more is tried now and then. */
  function allowed(): number {
    if (learned < options.max && options.clock() >= growsAtMs) return learned + 1;
    return learned;
  }

  /** Whether fewer than so many of those who wait go before this one; equals as they came. */
  function isAmong(candidate: Candidate, places: number): boolean {
    const rank = candidate.rank();
    let before = 0;
    let isLater = false;
    for (const other of waiting) {
      if (before >= places) return false;
      if (other === candidate) isLater = true;
      else if (isLater ? other.rank() < rank : other.rank() <= rank) before++;
    }
    return before < places;
  }

  function makeRoom(candidate: Candidate): void {
    const worst = lastOf(seated);
    if (worst && worst.rank() > candidate.rank()) worst.yieldSeat();
  }

  function leave(candidate: Candidate): void {
    if (seated.delete(candidate)) firstOf(waiting)?.wake();
  }

  return {
    take(candidate) {
      waiting.add(candidate);
      const free = allowed() - seated.size;
      if (free <= 0) makeRoom(candidate);
      if (!isAmong(candidate, Math.max(0, free))) return false;
      waiting.delete(candidate);
      seated.add(candidate);
      // A probe: refused, it lowers the number again.
      if (seated.size > learned) {
        learned = seated.size;
        growsAtMs = options.clock() + pauseMs;
      }
      return true;
    },
    leave,
    forget(candidate) {
      waiting.delete(candidate);
      leave(candidate);
    },
    crowded(forMs) {
      learned = Math.min(learned, seated.size);
      pauseMs = forMs;
      growsAtMs = options.clock() + forMs;
    },
    open: () => seated.size,
  };
}

/** The first of the lowest rank. */
function firstOf(candidates: Iterable<Candidate>): Candidate | undefined {
  return pick(candidates, (rank, best) => rank < best);
}

/** The first of the highest rank. */
function lastOf(candidates: Iterable<Candidate>): Candidate | undefined {
  return pick(candidates, (rank, best) => rank > best);
}

function pick(
  candidates: Iterable<Candidate>,
  isBetter: (rank: number, best: number) => boolean,
): Candidate | undefined {
  let chosen: { readonly candidate: Candidate; readonly rank: number } | undefined;
  for (const candidate of candidates) {
    const rank = candidate.rank();
    if (!chosen || isBetter(rank, chosen.rank)) chosen = { candidate, rank };
  }
  return chosen?.candidate;
}
