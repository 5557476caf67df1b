import type { Caller, JobApi, SubmitRequest } from '../protocol/job-api.ts';
import type { OpenTelemetry } from './open-telemetry.ts';
import type { TraceContexts } from './trace-contexts.ts';

type JobSpansOptions = Pick<OpenTelemetry, 'api' | 'tracer'> & {
  readonly contexts: TraceContexts;
};

/** Spans of the runs of jobs, in the process that runs them. */
export type JobSpans = {
  /** A run begins; call the result with its outcome. Without a recorded trace there is no span. */
  began(traceparent: string | undefined): (outcome: string) => void;
};

const NONE = (): void => {};

/** One span for each run of a job: a worker adds it to the trace of the call that submitted the job. */
export function createJobSpans({ api, tracer, contexts }: JobSpansOptions): JobSpans {
  return {
    began(traceparent) {
      if (traceparent === undefined) return NONE;
      const parent = contexts.fromHeaders({ traceparent });
      const span = tracer.startSpan('run job', { kind: api.SpanKind.CONSUMER }, parent);
      return (outcome) => span.setAttribute('holdover.job.outcome', outcome).end();
    },
  };
}

/** The same port; a job is recorded with the `traceparent` of the call that submits it. */
export function recordTraceparent(
  jobs: JobApi,
  { contexts }: Pick<JobSpansOptions, 'contexts'>,
): JobApi {
  function traceparentFor(caller: Caller): string | undefined {
    const current = contexts.currentHeaders()['traceparent'];
    const context = contexts.ofCaller(caller);
    return current ?? (context && contexts.headersOf(context)['traceparent']);
  }
  return {
    ...jobs,
    submit(caller: Caller, request: SubmitRequest) {
      const traceparent = traceparentFor(caller);
      return jobs.submit(caller, traceparent === undefined ? request : { ...request, traceparent });
    },
  };
}
