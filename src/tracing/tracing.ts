import type { TracingSettings } from '../config/tracing.ts';
import type { Logger } from '../observability/log.ts';
import type { JobApi } from '../protocol/job-api.ts';
import { type OpenTelemetry, openTelemetry } from './open-telemetry.ts';
import { createJobSpans, recordTraceparent } from './job-spans.ts';
import { createPromptSpans } from './prompt-spans.ts';
import { createTraceContexts } from './trace-contexts.ts';
import { traceCalls } from './traced-calls.ts';
import { traceRequests } from './traced-requests.ts';

/** One trace from a v1 call through its v2 calls to the last frame of its prompt. */
export type Tracing = ReturnType<typeof createTracing>;

/** `undefined`: the environment asks for no traces, or for some that cannot be made. */
export async function openTracing(
  settings: TracingSettings,
  options: { readonly version: string; readonly log: Pick<Logger, 'warn'> },
): Promise<Tracing | undefined> {
  const telemetry = await openTelemetry(settings, options);
  return telemetry && createTracing(telemetry);
}

/** @internal */
export function createTracing(telemetry: OpenTelemetry) {
  const contexts = createTraceContexts(telemetry);
  const parts = { ...telemetry, contexts };
  const prompts = createPromptSpans(parts);
  return {
    requests: traceRequests(parts),
    prompts,
    runs: createJobSpans(parts),
    /** Jobs of these calls are run in the trace of their caller, by whichever process runs them. */
    record: (jobs: JobApi): JobApi => recordTraceparent(jobs, parts),
    /** Headers for the service itself, and for no other host. */
    headers: contexts.currentHeaders,
    wrap: (jobs: JobApi, isRemote: boolean): JobApi => traceCalls(jobs, { ...parts, isRemote }),
    async close(): Promise<void> {
      prompts.close();
      await telemetry.close();
    },
  };
}
