import type { Span } from '@opentelemetry/api';
import type { PortSubscriber } from '../observability/observed-port.ts';
import type { Result } from '../protocol/job-api.ts';
import type { OpenTelemetry } from './open-telemetry.ts';
import type { TraceContexts } from './trace-contexts.ts';

type TracedCallsOptions = Pick<OpenTelemetry, 'api' | 'tracer'> & {
  readonly contexts: TraceContexts;
  /** The calls leave this process. */
  readonly isRemote: boolean;
};

/** Each call of a traced request or prompt is a span, named as a v2 request. */
export function traceCalls({
  api,
  tracer,
  contexts,
  isRemote,
}: TracedCallsOptions): PortSubscriber {
  const kind = isRemote ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;

  function note(answer: Result<unknown>, span: Span): void {
    if (answer.ok) return;
    const { status, code } = answer.error;
    span.setAttributes({ 'http.response.status_code': status, 'error.type': code });
    if (status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
  }

  return (call) => {
    const parent = contexts.ofCaller(call.caller);
    if (parent === undefined) return undefined;
    const span = tracer.startSpan(call.operation, { kind }, parent);
    contexts.beginCall(call, api.trace.setSpan(parent, span));
    return {
      onAnswer(answer) {
        contexts.endCall(call);
        note(answer, span);
        const isStream = call.method === 'events' && answer.ok;
        if (!isStream) span.end();
      },
      onFailure() {
        contexts.endCall(call);
        // No message: it may hold what a caller sent.
        span.setStatus({ code: api.SpanStatusCode.ERROR }).end();
      },
      onStreamEnd: () => span.end(),
    };
  };
}
