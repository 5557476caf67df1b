import type { JobApi } from '../wire/jobs.ts';
import { DEFAULT_MODEL_LIMITS, type ModelLimits } from './limits.ts';
import { localModels } from './local.ts';
import { type ModelRouter, type ModelRouterDeps, createModelRouter } from './router.ts';
import { createThreads } from './threads.ts';

type Deps = Omit<ModelRouterDeps, 'models' | 'limits'> & {
  readonly jobs: Pick<JobApi, 'content' | 'createAsset'>;
  readonly spoolDir: string;
  readonly limits: Partial<ModelLimits>;
};

/** The model router over the models of this machine. */
export function openEmbeddedModels(deps: Deps): ModelRouter {
  const limits = { ...DEFAULT_MODEL_LIMITS, ...deps.limits };
  const threads = createThreads({ limits, log: deps.log });
  const models = localModels({ ...deps, threads, maxFileBytes: limits.maxInputBytes });
  const router = createModelRouter({ ...deps, models, limits });
  return {
    middleware: router.middleware,
    async close() {
      await router.close();
      await threads.close();
    },
  };
}
