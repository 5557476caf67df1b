import type { Logger } from '../telemetry.ts';

/** A chore done again and again, never twice at once. */
export type Keeper = {
  /** Does `first`, then the chore, then the chore at every interval. */
  start(first: () => Promise<void>): void;
  /** Waits for a chore under way. */
  close(): Promise<void>;
};

/** The timer keeps no process alive; a chore that fails is logged and tried at the next turn. */
export function createKeeper(
  chore: () => Promise<void>,
  { log, everyMs }: { readonly log: Logger; readonly everyMs: number },
): Keeper {
  let timer: NodeJS.Timeout | undefined;
  let underWay: Promise<void> | undefined;
  const turn = (task: () => Promise<void>): void => {
    underWay ??= task()
      .catch((error: unknown) =>
        log.error({ err: error }, 'a sweep of expired jobs and assets failed'),
      )
      .finally(() => (underWay = undefined));
  };
  return {
    start(first) {
      timer = setInterval(() => turn(chore), everyMs).unref();
      turn(async () => {
        await first();
        await chore();
      });
    },
    async close() {
      clearInterval(timer);
      await underWay;
    },
  };
}
