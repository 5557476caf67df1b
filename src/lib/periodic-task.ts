import type { Logger } from '../observability/log.ts';

/** A chore done again and again, never twice at once. */
export type PeriodicTask = {
  /** Does `first`, then the chore, then the chore at every interval. */
  start(first: () => Promise<void>): void;
  /** Waits for a chore under way. */
  close(): Promise<void>;
};

/** The timer keeps no process alive; a chore that fails is logged and tried at the next turn. */
export function createPeriodicTask(
  chore: () => Promise<void>,
  { log, everyMs }: { readonly log: Logger; readonly everyMs: number },
): PeriodicTask {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  const run = (task: () => Promise<void>): void => {
    running ??= task()
      .catch((error: unknown) =>
        log.error({ err: error }, 'a sweep of expired jobs and assets failed'),
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
