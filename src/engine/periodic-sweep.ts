import type { Logger } from '../observability/log.ts';
import type { Clock } from '../lib/clock.ts';
import { BackgroundTasks } from '../lib/concurrency.ts';

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
  readonly #tasks = new BackgroundTasks();

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  start(): void {
    const { first, sweep, everyMs, clock, log } = this.#options;
    const firstRun = async (): Promise<void> => {
      await first();
      await sweep();
    };
    const repeat = async (): Promise<void> => {
      for (let run = firstRun; ; run = sweep) {
        await run().catch(logFailure);
        // Rejects when `close` is called.
        await clock.sleep(everyMs, this.#tasks.signal);
      }
    };
    const logFailure = (err: unknown): void =>
      log.error({ event: 'retention.sweep_failed', err }, 'a sweep of jobs and assets failed');
    void this.#tasks.run(repeat, logFailure);
  }

  /** Stops, and waits for a run in progress. */
  close(): Promise<void> {
    return this.#tasks.close();
  }
}
