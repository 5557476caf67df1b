import type { JobApi, JobEvent, Result } from '../protocol/job-api.ts';

/** How each call on the port reads as a v2 request. */
export const V2_CALLS = {
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

/** A call on the port, whichever it is. */
export type PortCall = (...args: readonly unknown[]) => Promise<Result<unknown>>;

type HandleCall = (
  method: keyof JobApi,
  call: PortCall,
  args: readonly unknown[],
) => Promise<Result<unknown>>;

/** The same port; `handle` makes each call, or does more beside it. */
export function interceptCalls(jobs: JobApi, handle: HandleCall): JobApi {
  return new Proxy(jobs, {
    get(target, name, receiver) {
      const member = Reflect.get(target, name, receiver) as unknown;
      if (typeof name !== 'string' || !Object.hasOwn(V2_CALLS, name)) return member;
      const call = (member as PortCall).bind(receiver);
      return (...args: readonly unknown[]) => handle(name as keyof JobApi, call, args);
    },
  });
}

type EventObserver = {
  readonly onEvent?: (event: JobEvent) => void;
  /** The iteration has ended, failed or been left. */
  readonly onEnd?: () => void;
};

/** The answer with its stream of events observed; ending the iteration ends the source at once. */
export function observeEvents(
  answer: Result<unknown>,
  { onEvent, onEnd }: EventObserver,
): Result<unknown> {
  if (!answer.ok) return answer;
  const events = answer.value as AsyncIterable<JobEvent>;
  const observed: AsyncIterable<JobEvent> = {
    [Symbol.asyncIterator]() {
      const source = events[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await source.next();
            if (result.done === true) onEnd?.();
            else onEvent?.(result.value);
            return result;
          } catch (error) {
            onEnd?.();
            throw error;
          }
        },
        async return(value: unknown) {
          onEnd?.();
          return (await source.return?.(value)) ?? { done: true, value: undefined };
        },
      };
    },
  };
  return { ...answer, value: observed };
}
