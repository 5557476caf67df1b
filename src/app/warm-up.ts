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
  return setTimeout(() => void warmUp(), DELAY_MS).unref();
}
