import type { TimeSource } from '../../lib/clock.ts';

/** A job that waits for an event stream. */
export type StreamCandidate = {
  /** Lower ranks are first: watched before unwatched, running before queued. */
  readonly rank: () => number;
  /** Called when a slot may be free. */
  readonly wake: () => void;
  /** Called when the stream must be given up for a candidate of lower rank. */
  readonly preempt: () => void;
};

/** The tens digit of a rank says if a client watches the job. */
export const RANK = { unwatched: 10, queued: 1 } as const;

/**
 * The event streams of one upstream. Their number is limited; watched jobs and running jobs get
 * them first.
 */
export class StreamSlots {
  readonly #max: number;
  readonly #clock: TimeSource;
  readonly #holders = new Set<StreamCandidate>();
  readonly #waiting = new Set<StreamCandidate>();
  #knownLimit: number;
  #growsAtMs = 0;
  #pauseMs = 0;

  constructor(max: number, clock: TimeSource) {
    this.#max = max;
    this.#knownLimit = max;
    this.#clock = clock;
  }

  openCount(): number {
    return this.#holders.size;
  }

  /** Takes a slot. True: open a stream, and call `release` when it is over. */
  acquire(candidate: StreamCandidate): boolean {
    this.#waiting.add(candidate);
    const free = this.#limit() - this.#holders.size;
    if (free <= 0) this.#preemptLowest(candidate);
    if (!this.#isAmongFirst(candidate, Math.max(0, free))) return false;
    this.#waiting.delete(candidate);
    this.#holders.add(candidate);
    // A trial: a refusal lowers the limit again.
    if (this.#holders.size > this.#knownLimit) {
      this.#knownLimit = this.#holders.size;
      this.#growsAtMs = this.#clock.now() + this.#pauseMs;
    }
    return true;
  }

  release(candidate: StreamCandidate): void {
    if (this.#holders.delete(candidate)) this.#wakeNext();
  }

  /** Removes a candidate that needs no stream any more, or may open none now. */
  remove(candidate: StreamCandidate): void {
    if (this.#waiting.delete(candidate)) this.#wakeNext();
    this.release(candidate);
  }

  /**
   * Notes that the upstream opens no more streams for this time. The candidate has released its
   * slot.
   */
  noteLimit(forMs: number): void {
    this.#knownLimit = Math.min(this.#knownLimit, this.#holders.size);
    this.#pauseMs = forMs;
    this.#growsAtMs = this.#clock.now() + forMs;
  }

  /** Returns the limit. Some time after a refusal, one more stream is tried. */
  #limit(): number {
    const mayTry = this.#knownLimit < this.#max && this.#clock.now() >= this.#growsAtMs;
    return this.#knownLimit + Number(mayTry);
  }

  /**
   * True when fewer than `count` waiting candidates precede this one. Equal ranks keep their order
   * of arrival.
   */
  #isAmongFirst(candidate: StreamCandidate, count: number): boolean {
    const rank = candidate.rank();
    let preceding = 0;
    let isLater = false;
    for (const other of this.#waiting) {
      if (preceding >= count) return false;
      if (other === candidate) isLater = true;
      else if (isLater ? other.rank() < rank : other.rank() <= rank) preceding++;
    }
    return preceding < count;
  }

  #preemptLowest(candidate: StreamCandidate): void {
    const worst = firstOf(this.#holders, -1);
    if (worst && worst.rank() > candidate.rank()) worst.preempt();
  }

  #wakeNext(): void {
    if (this.#holders.size < this.#limit()) firstOf(this.#waiting, 1)?.wake();
  }
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
