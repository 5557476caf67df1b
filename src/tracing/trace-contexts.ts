import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context } from '@opentelemetry/api';
import type { Caller } from '../protocol/job-api.ts';
import type { OpenTelemetry } from './open-telemetry.ts';

/** Work that a call has started may go on after it, for other callers. */
type OpenCall = { readonly context: Context; isOpen: boolean };

export type TraceContexts = ReturnType<typeof createTraceContexts>;

/** Headers of a request, by their names in lower case. */
export type TraceHeaders = { readonly [name: string]: string };

const NO_HEADERS: TraceHeaders = {};

/**
 * Which span a call belongs to. A caller object stands for one request or one prompt, so its v2
 * calls are found by it; the store covers one v2 call on its way to the connection.
 */
export function createTraceContexts({
  api,
  propagator,
}: Pick<OpenTelemetry, 'api' | 'propagator'>) {
  const byCaller = new WeakMap<Caller, Context>();
  const current = new AsyncLocalStorage<OpenCall>();

  function headersOf(context: Context): TraceHeaders {
    const headers: Record<string, string> = {};
    propagator.inject(context, headers, api.defaultTextMapSetter);
    return headers;
  }

  return {
    headersOf,
    /** The context that a request came with, or a new trace. */
    fromHeaders: (headers: { readonly [name: string]: string | string[] | undefined }): Context =>
      propagator.extract(api.ROOT_CONTEXT, headers, api.defaultTextMapGetter),
    /** From now on calls in the name of this very object belong to this context. */
    setCaller: (caller: Caller, context: Context): void => void byCaller.set(caller, context),
    ofCaller: (caller: Caller | undefined): Context | undefined =>
      typeof caller === 'object' ? byCaller.get(caller) : undefined,
    /** Runs a call, whose context counts until it settles. */
    async runIn<T>(context: Context, call: () => Promise<T>): Promise<T> {
      const store: OpenCall = { context, isOpen: true };
      try {
        return await current.run(store, call);
      } finally {
        store.isOpen = false;
      }
    },
    /** The headers that pass the current v2 call's context to the service. */
    currentHeaders(this: void): TraceHeaders {
      const call = current.getStore();
      return call?.isOpen ? headersOf(call.context) : NO_HEADERS;
    },
  };
}
