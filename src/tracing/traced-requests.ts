import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Span } from '@opentelemetry/api';
import { routeOf } from '../observability/metrics.ts';
import type { OpenTelemetry } from './open-telemetry.ts';
import type { TraceContexts } from './trace-contexts.ts';

type TracedRequestsOptions = Pick<OpenTelemetry, 'api' | 'tracer'> & {
  readonly contexts: TraceContexts;
};

const TRACE_HEADER = /^(traceparent|tracestate)$/i;

/** One span for each HTTP request, named after its route, in the trace of its caller. */
export function traceRequests({ api, tracer, contexts }: TracedRequestsOptions): Koa.Middleware {
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
