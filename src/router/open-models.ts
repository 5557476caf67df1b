import type { AssetCalls } from '../protocol/job-api.ts';
import { DEFAULT_MODEL_LIMITS, type ModelLimits } from './limits.ts';
import { localModels } from './local/local-models.ts';
import { type ModelRouter, type ModelRouterOptions, LocalModelRouter } from './router.ts';
import { createModelThreads } from './local/threads.ts';

type EmbeddedModelsOptions = Omit<ModelRouterOptions, 'models' | 'limits'> & {
  readonly files: { readonly jobs: AssetCalls; readonly spoolDir: string };
  readonly limits: Partial<ModelLimits>;
};

/** The model router over the models of this machine. */
export function openEmbeddedModels(options: EmbeddedModelsOptions): ModelRouter {
  const limits = { ...DEFAULT_MODEL_LIMITS, ...options.limits };
  const threads = createModelThreads({ limits, log: options.log });
  const models = localModels({ ...options.files, threads, maxFileBytes: limits.maxInputBytes });
  const router = new LocalModelRouter({ ...options, models, limits });
  return {
    middleware: router.middleware,
    async close() {
      await router.close();
      await threads.close();
    },
  };
}
