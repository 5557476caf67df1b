import type { Logger } from '../observability/log.ts';

/** A task that runs at an interval, never twice at once. */
export type PeriodicTask = {
  /** Runs `first`, then the task, then the task at every interval. */
  start(first: () => Promise<void>): void;
  /** Stops, and waits for a run under way. */
  close(): Promise<void>;
};

/**
 * The timer does not keep the process alive. A run that fails is logged, and the next interval
 * tries again.
 */
export function createPeriodicTask(
  chore: () => Promise<void>,
  { log, everyMs }: { readonly log: Logger; readonly everyMs: number },
): PeriodicTask {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  const run = (task: () => Promise<void>): void => {
    running ??= task()
      .catch((error: unknown) =>
        log.error(
          { event: 'retention.sweep_failed', err: error },
          'a sweep of expired jobs and assets failed',
        ),
      )
      .finally(() => (running = undefined));
  };
  return {
    start(first) {
      timer = setInterval(() => run(chore), everyMs).unref();
      run(async () => {
        await first();
        await chore();
      });
    },
    async close() {
      clearInterval(timer);
      await running;
    },
  };
}
