import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import type { Context } from '@opentelemetry/api';
import type { CallCause, CallCauses } from '../observability/call-causes.ts';
import type { PortCall } from '../observability/observed-port.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { OpenTelemetry } from './open-telemetry.ts';

/** Headers of a request, by their names in lower case. */
export type TraceHeaders = { readonly [name: string]: string };

const NO_HEADERS: TraceHeaders = {};

type TraceContextsOptions = Pick<OpenTelemetry, 'api' | 'propagator'> & {
  readonly causes: CallCauses;
};

/** The contexts of the causes of v2 calls, and of the v2 calls while they are made. */
export class TraceContexts {
  /** The v2 call that is being made, on its way to the connection. */
  readonly currentCall = new AsyncLocalStorage<PortCall>();
  readonly #options: TraceContextsOptions;
  readonly #contexts = new WeakMap<CallCause | PortCall, Context>();

  constructor(options: TraceContextsOptions) {
    this.#options = options;
  }

  /** From now on v2 calls of this request, or in the name of this very caller, belong to this context. */
  linkCause(requestOrCaller: IncomingMessage | Caller, context: Context): void {
    this.#contexts.set(this.#options.causes.causeOf(requestOrCaller), context);
  }

  ofCaller(caller: Caller | undefined): Context | undefined {
    return caller && this.#contexts.get(this.#options.causes.causeOf(caller));
  }

  beginCall(call: PortCall, context: Context): void {
    this.#contexts.set(call, context);
  }

  /** Work that a call has started may go on after its answer, for other callers. */
  endCall(call: PortCall): void {
    this.#contexts.delete(call);
  }

  /** Returns the context that a request came with, or a new trace. */
  fromHeaders(headers: { readonly [name: string]: string | string[] | undefined }): Context {
    const { api, propagator } = this.#options;
    return propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter);
  }

  headersOf(context: Context): TraceHeaders {
    const { api, propagator } = this.#options;
    const headers: Record<string, string> = {};
    propagator.inject(context, headers, api.defaultTextMapSetter);
    return headers;
  }

  /** The headers that pass the context of the current v2 call to the service. */
  readonly currentHeaders = (): TraceHeaders => {
    const call = this.currentCall.getStore();
    const context = call && this.#contexts.get(call);
    return context ? this.headersOf(context) : NO_HEADERS;
  };

  /** The `traceparent` of the current v2 call, or of the request or prompt of this caller. */
  traceparentOf(caller: Caller): string | undefined {
    const current = this.currentHeaders()['traceparent'];
    const context = this.ofCaller(caller);
    return current ?? (context && this.headersOf(context)['traceparent']);
  }
}
