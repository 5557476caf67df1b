import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Upstream } from '../config/upstream.ts';
import type { Span } from '@opentelemetry/api';
import { routeOf } from '../observability/metrics.ts';
import type { OpenTelemetry } from './open-telemetry.ts';
import type { TraceContexts } from './trace-contexts.ts';
import type { PortSubscriber } from '../observability/observed-port.ts';
import type { Result, Caller, JobApi, SubmitRequest } from '../protocol/job-api.ts';

/** The parts that spans are made with. */
type SpanParts = OpenTelemetry & { readonly contexts: TraceContexts };

const TRACE_HEADER = /^(traceparent|tracestate)$/i;

/** One span for each HTTP request, named after its route, in the trace of its caller. */
export function traceRequests({ api, tracer, contexts }: SpanParts): Koa.Middleware {
  function begin(request: IncomingMessage): Span {
    const parent = contexts.fromHeaders(request.headers);
    const method = request.method ?? '';
    const attributes = { 'http.request.method': method };
    const span = tracer.startSpan(method, { kind: api.SpanKind.SERVER, attributes }, parent);
    const context = api.trace.setSpan(parent, span);
    contexts.linkCause(request, context);
    passOn(request, contexts.headersOf(context));
    return span;
  }

  function end(span: Span, ctx: Koa.Context, endedAtMs: number): void {
    const { req, res } = ctx;
    const route = routeOf(ctx);
    span.updateName(route === 'none' ? (req.method ?? '') : `${req.method} ${route}`);
    span.setAttributes({ 'http.route': route, 'http.response.status_code': res.statusCode });
    if (!res.writableFinished) span.setAttribute('error.type', 'cut_off');
    if (res.statusCode >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
    span.end(endedAtMs);
  }

  return (ctx, next) => {
    const span = begin(ctx.req);
    const served = next();
    // An answer that is passed on closes before its route is noted.
    ctx.res.once('close', () => {
      const closedAtMs = Date.now();
      void served.finally(() => end(span, ctx, closedAtMs));
    });
    return served;
  };
}

/** A call that is passed to the service unchanged carries the span of this server instead. */
function passOn(request: IncomingMessage, headers: { readonly [name: string]: string }): void {
  const { rawHeaders } = request;
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (TRACE_HEADER.test(rawHeaders[at] ?? '')) rawHeaders.splice(at, 2);
  }
  for (const [name, value] of Object.entries(headers)) rawHeaders.push(name, value);
}

/** Each call of a traced request or prompt is a span, named as a v2 request. */
export function traceCalls(
  { api, tracer, contexts }: SpanParts,
  upstreamKind: Upstream['kind'],
): PortSubscriber {
  const kind = upstreamKind === 'remote' ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL;

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

type SpanPrompt = {
  readonly key: string;
  readonly promptId: string;
  readonly isTakenOver: boolean;
};

export interface PromptSpans {
  /** To be recorded with a prompt of this caller: its `traceparent`. */
  readonly traceparentOf: (caller: Caller) => string | undefined;
  /** Calls in the name of the caller, which is of this prompt alone, belong to its span now. */
  began(caller: Caller, prompt: SpanPrompt, traceparent?: string): void;
  /** Its last frame is sent. */
  readonly ended: (key: string, outcome: string) => void;
  /** Another process goes on with it, or none does until the next start. */
  readonly left: (key: string) => void;
  readonly close: () => void;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** One span for each prompt that this process leads, until its last frame. */
export function createPromptSpans({ api, tracer, contexts }: SpanParts): PromptSpans {
  const spans = new Map<string, Span>();

  function end(key: string, outcome: string): void {
    spans.get(key)?.setAttribute('holdover.prompt.outcome', outcome).end();
    spans.delete(key);
  }

  return {
    traceparentOf: (caller) => contexts.traceparentOf(caller),
    began(caller, { key, promptId, isTakenOver }, traceparent) {
      const isRecorded = traceparent !== undefined;
      const parent = isRecorded ? contexts.fromHeaders({ traceparent }) : contexts.ofCaller(caller);
      if (parent === undefined || spans.has(key)) return;
      // A client may choose any text as its id; only what is certainly an id is shown.
      const id = UUID.test(promptId) ? { 'holdover.prompt.id': promptId } : {};
      const attributes = { ...id, 'holdover.prompt.resumed': isTakenOver };
      const span = tracer.startSpan('prompt', { attributes }, parent);
      spans.set(key, span);
      contexts.linkCause(caller, api.trace.setSpan(parent, span));
    },
    ended: end,
    left: (key) => end(key, 'left'),
    close: () => [...spans.keys()].forEach((key) => end(key, 'left')),
  };
}

/**
 * Begins the span of a run of a job; call the result with its outcome. `undefined`: no trace is recorded with the job.
 */
export type TraceRun = (traceparent: string | undefined) => ((outcome: string) => void) | undefined;

/** One span for each run of a job: a worker adds it to the trace of the call that submitted the job. */
export function traceRuns({ api, tracer, contexts }: SpanParts): TraceRun {
  return (traceparent) => {
    if (traceparent === undefined) return undefined;
    const parent = contexts.fromHeaders({ traceparent });
    const span = tracer.startSpan('run job', { kind: api.SpanKind.CONSUMER }, parent);
    return (outcome) => span.setAttribute('holdover.job.outcome', outcome).end();
  };
}

/** Adds the `traceparent` of the call to each submission: whichever process runs the job needs it. */
export function withTraceparents(jobs: JobApi, contexts: TraceContexts): JobApi {
  return {
    ...jobs,
    submit(caller: Caller, request: SubmitRequest) {
      const traceparent = contexts.traceparentOf(caller);
      return jobs.submit(caller, traceparent === undefined ? request : { ...request, traceparent });
    },
  };
}
