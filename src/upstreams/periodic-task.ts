import type { Logger } from '../observability/log.ts';
import type { Clock } from '../lib/clock.ts';

export type PeriodicTaskOptions = {
  readonly everyMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** The log line of a run that fails. */
  readonly failure: { readonly event: string; readonly message: string };
};

/** A task that runs at an interval, never twice at once. A run that fails is logged. */
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
    void this.#repeat(async () => {
      await first();
      await this.#task();
    });
  }

  /** Stops, and waits for a run under way. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #repeat(first: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    await this.#run(first);
    while (await this.#wait(signal)) await this.#run(this.#task);
  }

  /** False when the task was closed meanwhile. */
  async #wait(signal: AbortSignal): Promise<boolean> {
    const { clock, everyMs } = this.#options;
    return await clock.sleep(everyMs, signal).then(
      () => !signal.aborted,
      () => false,
    );
  }

  #run(task: () => Promise<void>): Promise<void> {
    const { log, failure } = this.#options;
    this.#running = task().catch((error: unknown) =>
      log.error({ event: failure.event, err: error }, failure.message),
    );
    return this.#running;
  }
}
