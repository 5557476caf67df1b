import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { DecoratorHandler, type Dispatcher, Pool } from 'undici';
import { createInterimAnswerCounter } from '../../http/interim-answers.ts';
import { createByteBudget } from './answer-limits.ts';
import type { RemoteLimits } from './limits.ts';
import { type WholeAnswer, collectAnswer } from './collect-answer.ts';

type Body = string | AsyncIterable<Buffer>;

export type HttpRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Body | undefined;
  readonly headersTimeoutMs: number;
  /** Most silence within the body; 0: the reader of the body watches for it. */
  readonly bodyTimeoutMs: number;
  /** `bodies` last: they must not take the connections of calls. */
  readonly pool: 'calls' | 'bodies';
  readonly signal?: AbortSignal;
};

/**
 * An answer whose body is not read yet, or why there is none and whether the upstream may know of
 * the request.
 */
export type HttpAnswer =
  | {
      readonly ok: true;
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: Readable;
    }
  | { readonly ok: false; readonly wasSent: boolean; readonly cause: Error };

/** The connections to one origin. */
export type Connections = {
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** The same with the body read to its end. */
  sendAndCollect(request: HttpRequest): Promise<WholeAnswer>;
  close(): Promise<void>;
};

/** Redirects are not followed by this client at all; credentials cannot leave the origin. */
export function createConnections(
  origin: string,
  limits: Pick<
    RemoteLimits,
    'connectTimeoutMs' | 'connections' | 'maxAnswerBytes' | 'maxAnswersBytes' | 'readTimeoutMs'
  >,
): Connections {
  const connect = { timeout: limits.connectTimeoutMs };
  const pools = {
    calls: new Pool(origin, { connect, connections: limits.connections, pipelining: 1 }),
    bodies: new Pool(origin, { connect, pipelining: 1 }),
  };
  const trackedPools = {
    calls: pools.calls.compose(trackSending),
    bodies: pools.bodies.compose(trackSending),
  };
  const bounds = {
    maxBytes: limits.maxAnswerBytes,
    budget: createByteBudget(limits.maxAnswersBytes),
    maxBodyMs: limits.readTimeoutMs * 2,
  };
  return {
    sendAndCollect: (request) =>
      new Promise((resolve) => {
        pools[request.pool].dispatch(optionsOf(request), collectAnswer(bounds, resolve));
      }),
    async send(request) {
      const sendState: SendState = { wasSent: false };
      try {
        const answer = await trackedPools[request.pool].request({
          ...optionsOf(request),
          opaque: sendState,
        });
        const { statusCode: status, headers, body } = answer;
        // The reader of a body receives its error; a body without a reader must not end the
        // process.
        body.on('error', () => {});
        return { ok: true, status, headers, body };
      } catch (error) {
        const cause = error instanceof Error ? error : new Error(String(error));
        return { ok: false, wasSent: sendState.wasSent, cause };
      }
    },
    async close() {
      await Promise.all([pools.calls.destroy(), pools.bodies.destroy()]);
    },
  };
}

type SendState = { wasSent: boolean };

function optionsOf(request: HttpRequest): Dispatcher.RequestOptions<null> {
  const { method, path, headers, body, headersTimeoutMs, bodyTimeoutMs, signal } = request;
  const options: Dispatcher.RequestOptions<null> = {
    method,
    path,
    headers,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
  };
  if (body !== undefined) options.body = body as NonNullable<Dispatcher.DispatchOptions['body']>;
  if (signal) options.signal = signal;
  return options;
}

/** A request that never got a connection was not sent, whatever its error says. */
function trackSending(dispatch: Dispatcher['dispatch']): Dispatcher['dispatch'] {
  return (options, handler) => {
    const { opaque } = options as { readonly opaque?: SendState };
    return dispatch(options, opaque ? new SendTracker(handler, opaque) : handler);
  };
}

type Handler = Dispatcher.DispatchHandler;

/** The methods exist; only the type lacks them. */
const Decorator = DecoratorHandler as unknown as new (handler: Handler) => {
  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void;
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    ...more: readonly unknown[]
  ): void;
};

class SendTracker extends Decorator {
  readonly #fate: SendState;
  readonly #countInterim = createInterimAnswerCounter();

  constructor(handler: Handler, sendState: SendState) {
    super(handler);
    this.#fate = sendState;
  }

  override onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#fate.wasSent = true;
    super.onRequestStart(controller, context);
  }

  /** Interim answers end here: no caller waits for one, and the library takes a second head for a fault. */
  override onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    ...more: readonly unknown[]
  ): void {
    if (status < 200) this.#countInterim();
    else super.onResponseStart(controller, status, ...more);
  }
}
