import type { AsyncLocalStorage } from 'node:async_hooks';
import type Koa from 'koa';
import type { TracingSettings } from '../config/tracing.ts';
import type { Upstream } from '../config/upstream.ts';
import type { CallCauses } from '../observability/call-causes.ts';
import type { Logger } from '../observability/log.ts';
import type { PortSubscriber, PortCall } from '../observability/observed-port.ts';
import type { JobApi } from '../protocol/job-api.ts';
import { openTelemetry } from './open-telemetry.ts';
import {
  withTraceparents,
  createPromptSpans,
  type PromptSpans,
  traceCalls,
  traceRequests,
  traceRuns,
  type TraceRun,
} from './spans.ts';
import { TraceContexts, type TraceHeaders } from './trace-contexts.ts';

/** One trace from a v1 call through its v2 calls to the last frame of its prompt. */
export interface Tracing {
  readonly requests: Koa.Middleware;
  readonly prompts: PromptSpans;
  readonly run: TraceRun;
  /** Jobs of these calls are run in the trace of their caller, by whichever process runs them. */
  readonly record: (jobs: JobApi) => JobApi;
  /** Headers for the service itself, and for no other host. */
  readonly headers: () => TraceHeaders;
  /** The v2 call that is being made. `headers` and `record` need it. */
  readonly currentCall: AsyncLocalStorage<PortCall>;
  readonly calls: (upstreamKind: Upstream['kind']) => PortSubscriber;
  close(): Promise<void>;
}

/** `undefined`: the environment asks for no traces, or for some that cannot be made. */
export async function openTracing(
  settings: TracingSettings,
  options: {
    readonly version: string;
    readonly log: Logger;
    readonly causes: CallCauses;
  },
): Promise<Tracing | undefined> {
  const telemetry = await openTelemetry(settings, options);
  if (!telemetry) return undefined;
  const contexts = new TraceContexts({ ...telemetry, causes: options.causes });
  const parts = { ...telemetry, contexts };
  const prompts = createPromptSpans(parts);
  return {
    requests: traceRequests(parts),
    prompts,
    run: traceRuns(parts),
    record: (jobs) => withTraceparents(jobs, contexts),
    headers: contexts.currentHeaders,
    currentCall: contexts.currentCall,
    calls: (upstreamKind) => traceCalls(parts, upstreamKind),
    async close() {
      prompts.close();
      await telemetry.close();
    },
  };
}
