import type { LazyModelRouter } from '../models/lazy-router.ts';
import type { Logger } from '../observability/log.ts';

const DELAY_MS = 500;

/** Loads what the first callers need not wait for; what cannot be had now is tried again by them. */
export function scheduleWarmUp(models: LazyModelRouter | undefined, log: Logger): NodeJS.Timeout {
  async function warmUp(): Promise<void> {
    try {
      await import('sharp');
      await models?.open();
    } catch (error) {
      const text = 'image codecs or models could not be loaded; the next call tries again';
      log.error({ event: 'warm_up.failed', err: error }, text);
    }
  }
  // The tests start hundreds of servers that soon end: loading takes as long as a start does.
  const isWanted = process.env['HOLDOVER_WARM_UP'] !== 'off';
  return setTimeout(() => void (isWanted && warmUp()), DELAY_MS).unref();
}
