import type { Logger } from '../observability/log.ts';
import type { Clock } from '../lib/clock.ts';

type SweepOptions = {
  /** Runs once, before the first sweep. */
  readonly first: () => Promise<unknown>;
  readonly sweep: () => Promise<void>;
  /** The time from the end of a run to the next sweep. */
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Logger;
};

/** A sweep that runs at an interval, and never twice at the same time. A failed run is logged. */
export class PeriodicSweep {
  readonly #options: SweepOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#repeat();
  }

  /** Stops, and waits for a run in progress. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #repeat(): Promise<void> {
    const { first, sweep, everyMs, clock, log } = this.#options;
    const { signal } = this.#closing;
    const firstRun = async (): Promise<void> => {
      await first();
      await sweep();
    };
    for (let run = firstRun; !signal.aborted; run = sweep) {
      await run().catch((err: unknown) =>
        log.error({ event: 'retention.sweep_failed', err }, 'a sweep of jobs and assets failed'),
      );
      // The sleep rejects when `close` is called.
      await clock.sleep(everyMs, signal).catch(() => {});
    }
  }
}
