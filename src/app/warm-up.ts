import type { LazyModelRouter } from '../models/lazy-router.ts';
import type { Logger } from '../observability/log.ts';

const DELAY_MS = 500;

type WarmedServices = { readonly models: LazyModelRouter | undefined };

/** Loads what the first callers need not wait for; what cannot be had now is tried again by them. */
export function scheduleWarmUp({ models }: WarmedServices, log: Logger): NodeJS.Timeout {
  async function warmUp(): Promise<void> {
    try {
      await import('sharp');
      await models?.open();
    } catch (error) {
      log.error({ err: error }, 'picture codecs or models could not be loaded');
    }
  }
  return setTimeout(() => void warmUp(), DELAY_MS).unref();
}
