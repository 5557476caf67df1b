import type { TracingSettings } from '../config/tracing.ts';
import type { CallCauses } from '../observability/call-causes.ts';
import type { Logger } from '../observability/log.ts';
import type { PortSubscriber } from '../observability/observed-port.ts';
import type { JobApi } from '../protocol/job-api.ts';
import { type OpenTelemetry, openTelemetry } from './open-telemetry.ts';
import { TraceparentJobs, createJobSpans } from './job-spans.ts';
import { createPromptSpans } from './prompt-spans.ts';
import { TraceContexts } from './trace-contexts.ts';
import { traceCalls } from './traced-calls.ts';
import { traceRequests } from './traced-requests.ts';

/** One trace from a v1 call through its v2 calls to the last frame of its prompt. */
export type Tracing = ReturnType<typeof createTracing>;

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
  return telemetry && createTracing(telemetry, options.causes);
}

function createTracing(telemetry: OpenTelemetry, causes: CallCauses) {
  const contexts = new TraceContexts({ ...telemetry, causes });
  const parts = { ...telemetry, contexts };
  const prompts = createPromptSpans(parts);
  return {
    requests: traceRequests(parts),
    prompts,
    runs: createJobSpans(parts),
    /** Jobs of these calls are run in the trace of their caller, by whichever process runs them. */
    record: (jobs: JobApi): JobApi => new TraceparentJobs(jobs, contexts).jobs,
    /** Headers for the service itself, and for no other host. */
    headers: contexts.currentHeaders,
    /** The v2 call that is being made. `headers` and `record` need it. */
    currentCall: contexts.currentCall,
    calls: (isRemote: boolean): PortSubscriber => traceCalls({ ...parts, isRemote }),
    async close(): Promise<void> {
      prompts.close();
      await telemetry.close();
    },
  };
}
