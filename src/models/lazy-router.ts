import { lazily } from '../lib/concurrency.ts';
import { MODEL_PATHS } from '../protocol/router.ts';
import type { ModelRouter } from './router.ts';

/** A router that loads with the first call of one of its paths, or when `open` is called. */
export type LazyModelRouter = ModelRouter & { open(): Promise<void> };

/**
 * Creates a router that loads later: its modules are a fifth of all, and would slow every start.
 */
export function createLazyModelRouter(load: () => Promise<ModelRouter>): LazyModelRouter {
  // Loading may fail, for example without free file descriptors.
  const router = lazily(load);
  return {
    async middleware(ctx, next) {
      if (!MODEL_PATHS.test(ctx.path)) return await next();
      const { middleware } = await router.get();
      await middleware(ctx, next);
    },
    async open() {
      await router.get();
    },
    async close() {
      const known = await router.known()?.catch(() => undefined);
      await known?.close();
    },
  };
}
