import type { Logger } from '../observability/log.ts';
import type { Clock } from '../lib/clock.ts';

export type PeriodicTaskOptions = {
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** The log line of a failed run. */
  readonly failure: { readonly event: string; readonly message: string };
};

/** A task that runs at an interval, and never twice at the same time. A failed run is logged. */
export class PeriodicTask {
  readonly #task: () => Promise<void>;
  readonly #options: PeriodicTaskOptions;
  readonly #closing = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(task: () => Promise<void>, options: PeriodicTaskOptions) {
    this.#task = task;
    this.#options = options;
  }

  /** Runs `first`, then the task, then the task `everyMs` after the end of each run. */
  start(first: () => Promise<void>): void {
    this.#running = this.#repeat(async () => {
      await first();
      await this.#task();
    });
  }

  /** Stops, and waits for a run in progress. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #repeat(first: () => Promise<void>): Promise<void> {
    const { clock, everyMs, log, failure } = this.#options;
    const { signal } = this.#closing;
    for (let task = first; !signal.aborted; task = this.#task) {
      await task().catch((error: unknown) =>
        log.error({ event: failure.event, err: error }, failure.message),
      );
      // The sleep rejects when the task is closed.
      await clock.sleep(everyMs, signal).catch(() => {});
    }
  }
}
