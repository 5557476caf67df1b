import type { Logger } from '../observability/log.ts';
import type { Clock } from '../lib/clock.ts';

type SweepOptions = { readonly everyMs: number; readonly clock: Clock; readonly log: Logger };

/** A sweep that runs at an interval, and never twice at the same time. A failed run is logged. */
export class PeriodicSweep {
  readonly #sweep: () => Promise<void>;
  readonly #options: SweepOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(sweep: () => Promise<void>, options: SweepOptions) {
    this.#sweep = sweep;
    this.#options = options;
  }

  /** Runs `first`, then the sweep, then the sweep `everyMs` after the end of each run. */
  start(first: () => Promise<void>): void {
    this.#running = this.#repeat(async () => {
      await first();
      await this.#sweep();
    });
  }

  /** Stops, and waits for a run in progress. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #repeat(first: () => Promise<void>): Promise<void> {
    const { clock, everyMs, log } = this.#options;
    const { signal } = this.#closing;
    for (let task = first; !signal.aborted; task = this.#sweep) {
      await task().catch((err: unknown) =>
        log.error({ event: 'retention.sweep_failed', err }, 'a sweep of jobs and assets failed'),
      );
      // The sleep rejects when `close` is called.
      await clock.sleep(everyMs, signal).catch(() => {});
    }
  }
}
