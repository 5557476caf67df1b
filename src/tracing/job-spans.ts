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

/** Adds the `traceparent` of the call to each submission: whichever process runs the job needs it. */
export class TraceparentJobs {
  /** The same port, with this change. */
  readonly jobs: JobApi;

  constructor(jobs: JobApi, contexts: TraceContexts) {
    this.jobs = {
      ...jobs,
      submit(caller: Caller, request: SubmitRequest) {
        const traceparent = contexts.traceparentOf(caller);
        return jobs.submit(
          caller,
          traceparent === undefined ? request : { ...request, traceparent },
        );
      },
    };
  }
}
