import type { Clock } from '../../lib/clock.ts';

/**
 * Outputs and shown results so far are written as a whole, for readers of the running job. A large
 * job is not written at every change: only when it has grown by a quarter, or `everyMs` after the
 * last write.
 */
export const SNAPSHOT = { alwaysUpTo: 100, growth: 1.25, everyMs: 1000 } as const;

type Growth = { count: number; writtenCount: number; writtenAtMs: number };

/** Decides which changed properties of a job are written with the next events. */
export class SnapshotSchedule {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed = new Set<string>();
  readonly #growing: ReadonlyMap<string, Growth> = new Map(
    ['output', 'x_node'].map((name) => [name, { count: 0, writtenCount: 0, writtenAtMs: 0 }]),
  );

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** An event of this name has changed the job. */
  add(eventName: string): void {
    this.#changed.add(eventName);
    const growth = this.#growing.get(eventName);
    if (growth) growth.count++;
  }

  hasChanges(): boolean {
    return this.#changed.size > 0;
  }

  isDue(): boolean {
    return [...this.#changed].some((name) => this.#isDue(name));
  }

  /** The names whose properties are to be written now. */
  takeDue(): ReadonlySet<string> {
    const due = new Set([...this.#changed].filter((name) => this.#isDue(name)));
    for (const name of due) {
      this.#changed.delete(name);
      const growth = this.#growing.get(name);
      if (!growth) continue;
      growth.writtenCount = growth.count;
      growth.writtenAtMs = this.#clock.now();
    }
    return due;
  }

  #isDue(name: string): boolean {
    const growth = this.#growing.get(name);
    if (!growth) return true;
    const { count, writtenCount, writtenAtMs } = growth;
    if (count <= SNAPSHOT.alwaysUpTo || count >= SNAPSHOT.growth * writtenCount) return true;
    return Math.abs(this.#clock.now() - writtenAtMs) >= SNAPSHOT.everyMs;
  }
}
