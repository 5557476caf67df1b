import { AsyncLocalStorage } from 'node:async_hooks';
import type { JobApi } from './wire/jobs.ts';

/** How each call on the port reads as a v2 request. */
const V2_CALLS = {
  submit: 'POST /api/v2/jobs',
  recover: 'GET /api/v2/jobs',
  get: 'GET /api/v2/jobs/{id}',
  workflow: 'GET /api/v2/jobs/{id}/workflow',
  events: 'GET /api/v2/jobs/{id}/events',
  cancel: 'POST /api/v2/jobs/{id}/cancel',
  list: 'GET /api/v2/jobs',
  createAsset: 'POST /api/v2/assets',
  assetFromHash: 'POST /api/v2/assets/from-hash',
  hasBlob: 'HEAD /api/v2/assets/by-hash/{hash}',
  asset: 'GET /api/v2/assets/{id}',
  deleteAsset: 'DELETE /api/v2/assets/{id}',
  content: 'GET /api/v2/assets/{id}/content',
  health: 'GET /api/v2/health',
} as const satisfies Record<keyof JobApi, string>;

/** Notes which v2 calls a v1 call became, for the log and for people who are leaving v1. */
export type Trace = {
  /** Runs a request; v2 calls made within it are noted in the list it gets. */
  readonly run: <T>(act: (calls: readonly string[]) => T) => T;
  /** The same port, with every call noted. */
  watch(jobs: JobApi): JobApi;
};

export function createTrace(): Trace {
  const storage = new AsyncLocalStorage<string[]>();
  return {
    run(act) {
      const calls: string[] = [];
      return storage.run(calls, () => act(calls));
    },
    watch: (jobs) =>
      new Proxy(jobs, {
        get(target, name, receiver) {
          if (typeof name === 'string' && name in V2_CALLS) {
            storage.getStore()?.push(V2_CALLS[name as keyof JobApi]);
          }
          return Reflect.get(target, name, receiver) as unknown;
        },
      }),
  };
}
