import type { Span } from '@opentelemetry/api';
import {
  V2_CALLS,
  interceptCalls,
  observeEvents,
  type PortCall,
} from '../observability/intercepted-port.ts';
import type { Caller, JobApi, Result } from '../protocol/job-api.ts';
import type { OpenTelemetry } from './open-telemetry.ts';
import type { TraceContexts } from './trace-contexts.ts';

type TracedCallsOptions = Pick<OpenTelemetry, 'api' | 'tracer'> & {
  readonly contexts: TraceContexts;
  /** The calls leave this process. */
  readonly isRemote: boolean;
};

/** The same port; each call in the name of a traced caller is a span, named as a v2 request. */
export function traceCalls(jobs: JobApi, options: TracedCallsOptions): JobApi {
  return interceptCalls(jobs, tracedCall);

  function tracedCall(
    method: keyof JobApi,
    call: PortCall,
    args: readonly unknown[],
  ): Promise<Result<unknown>> {
    const { api, tracer, contexts, isRemote } = options;
    const parent = contexts.ofCaller(args[0] as Caller | undefined);
    if (parent === undefined) return call(...args);
    const kind = isRemote ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;
    const span = tracer.startSpan(V2_CALLS[method], { kind }, parent);
    return contexts.runIn(api.trace.setSpan(parent, span), () =>
      finish(method, call(...args), span),
    );
  }

  async function finish(
    method: keyof JobApi,
    answering: Promise<Result<unknown>>,
    span: Span,
  ): Promise<Result<unknown>> {
    let isStream = false;
    try {
      const answer = await answering;
      note(answer, span);
      isStream = method === 'events' && answer.ok;
      return isStream ? observeEvents(answer, { onEnd: () => span.end() }) : answer;
    } catch (error) {
      // No message: it may hold what a caller sent.
      span.setStatus({ code: options.api.SpanStatusCode.ERROR });
      throw error;
    } finally {
      if (!isStream) span.end();
    }
  }

  function note(answer: Result<unknown>, span: Span): void {
    if (answer.ok) return;
    const { status, code } = answer.error;
    span.setAttributes({ 'http.response.status_code': status, 'error.type': code });
    if (status >= 500) span.setStatus({ code: options.api.SpanStatusCode.ERROR });
  }
}
