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

  function best(): readonly Candidate[] {
    return [...waiting].toSorted((a, b) => a.rank() - b.rank());
  }

  function makeRoom(candidate: Candidate): void {
    const worst = [...seated].toSorted((a, b) => b.rank() - a.rank())[0];
    if (worst && worst.rank() > candidate.rank()) worst.yieldSeat();
  }

  function leave(candidate: Candidate): void {
    if (seated.delete(candidate)) best()[0]?.wake();
  }

  return {
    take(candidate) {
      waiting.add(candidate);
      const free = allowed() - seated.size;
      if (free <= 0) makeRoom(candidate);
      if (!best().slice(0, Math.max(0, free)).includes(candidate)) return false;
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
