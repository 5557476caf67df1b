import type { Context, Span } from '@opentelemetry/api';
import type { Caller } from '../protocol/job-api.ts';
import type { OpenTelemetry } from './open-telemetry.ts';
import type { TraceContexts } from './trace-contexts.ts';

type PromptSpansOptions = Pick<OpenTelemetry, 'api' | 'tracer' | 'propagator'> & {
  readonly contexts: TraceContexts;
};

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
export function createPromptSpans({ api, tracer, contexts }: PromptSpansOptions): PromptSpans {
  const spans = new Map<string, Span>();

  function start(parent: Context, { promptId, isTakenOver }: Omit<SpanPrompt, 'key'>) {
    // A client may choose any text as its id; only what is certainly an id is shown.
    const id = UUID.test(promptId) ? { 'holdover.prompt.id': promptId } : {};
    const attributes = { ...id, 'holdover.prompt.resumed': isTakenOver };
    const span = tracer.startSpan('prompt', { attributes }, parent);
    return { span, context: api.trace.setSpan(parent, span) };
  }

  function end(key: string, attributes: { readonly [name: string]: string }): void {
    spans.get(key)?.setAttributes(attributes).end();
    spans.delete(key);
  }

  return {
    traceparentOf: (caller) => contexts.traceparentOf(caller),
    began(caller, prompt, traceparent) {
      const recorded =
        traceparent === undefined ? undefined : contexts.fromHeaders({ traceparent });
      const parent = recorded ?? contexts.ofCaller(caller);
      if (parent === undefined || spans.has(prompt.key)) return;
      const { span, context } = start(parent, prompt);
      spans.set(prompt.key, span);
      contexts.linkCause(caller, context);
    },
    ended: (key, outcome) => end(key, { 'holdover.prompt.outcome': outcome }),
    left: (key) => end(key, { 'holdover.prompt.outcome': 'left' }),
    close: () => [...spans.keys()].forEach((key) => end(key, LEFT)),
  };
}

const LEFT = { 'holdover.prompt.outcome': 'left' };
