import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Caller, JobApi, JobEvent, Result } from '../protocol/job-api.ts';
import type { CallCause, CallCauses } from './call-causes.ts';
import { type CallFields, describeArguments } from './v2-descriptions.ts';

/** How each call on the port reads as a v2 request. */
const V2_CALLS = {
  submit: 'POST /api/v2/jobs',
  search: 'GET /api/v2/jobs',
  get: 'GET /api/v2/jobs/{id}',
  workflow: 'GET /api/v2/jobs/{id}/workflow',
  events: 'GET /api/v2/jobs/{id}/events',
  cancel: 'POST /api/v2/jobs/{id}/cancel',
  list: 'GET /api/v2/jobs',
  createAsset: 'POST /api/v2/assets',
  assetFromHash: 'POST /api/v2/assets/from-hash',
  hasBlob: 'HEAD /api/v2/assets/by-hash/{hash}',
  asset: 'GET /api/v2/assets/{id}',
  deleteAsset: 'DELETE /api/v2/assets/{id}',
  content: 'GET /api/v2/assets/{id}/content',
  health: 'GET /api/v2/health',
} as const satisfies Record<keyof JobApi, string>;

export type V2Operation = (typeof V2_CALLS)[keyof JobApi];

/** A call on the port that has begun. Its facts are read when a subscriber asks for them. */
export class PortCall {
  readonly method: keyof JobApi;
  /** Absent for `health`. */
  readonly caller: Caller | undefined;
  /** The arguments after the caller. */
  readonly args: readonly unknown[];
  readonly #causes: CallCauses;
  #fields: CallFields | undefined;
  #jobId: string | undefined;
  #promptId: string | undefined;

  constructor(method: keyof JobApi, args: readonly unknown[], causes: CallCauses) {
    this.method = method;
    this.caller = method === 'health' ? undefined : (args[0] as Caller);
    this.args = args.slice(1);
    this.#causes = causes;
  }

  get operation(): V2Operation {
    return V2_CALLS[this.method];
  }

  /** The request or the prompt that made the call. */
  get cause(): CallCause | undefined {
    return this.caller && this.#causes.causeOf(this.caller);
  }

  /** Its arguments as fields of a log line. */
  get fields(): CallFields {
    return (this.#fields ??= describeArguments(this.method, this.args));
  }

  /** The keys that it carries. */
  get secrets(): readonly (string | undefined)[] {
    return [this.caller?.credential, ...(this.fields.secrets ?? [])];
  }

  get jobId(): string | undefined {
    return this.#jobId ?? this.fields.jobId;
  }

  /** The id that clients know of its prompt, as far as that is known by now. */
  get promptId(): string | undefined {
    if (this.#promptId === undefined && this.caller) {
      const found = this.#causes.promptOf(this.caller, this.jobId ?? this.fields.key);
      if (found !== undefined) this.linkPrompt(found);
    }
    return this.#promptId;
  }

  /** The call is about this prompt, and so is its job. */
  linkPrompt(promptId: string): void {
    this.#promptId = promptId;
    this.#linkJob();
  }

  /** The job of a submission is known from its answer. */
  noteAnswer(answer: Result<unknown>): void {
    if (this.method !== 'submit' || !answer.ok) return;
    this.#jobId = (answer.value as { readonly id: string }).id;
    this.#linkJob();
  }

  #linkJob(): void {
    const { caller, jobId } = this;
    if (!caller || jobId === undefined || this.#promptId === undefined) return;
    this.#causes.linkJob(caller.user, jobId, this.#promptId);
  }
}

/** The handlers that a subscriber has for a call after its beginning. */
export type CallHandlers = {
  readonly onAnswer?: (answer: Result<unknown>, ms: number) => void;
  /** There is no answer: something of our own, or the connection, failed. */
  readonly onFailure?: (ms: number) => void;
  /** The next event of the stream that the call requested. */
  readonly onEvent?: (event: JobEvent) => void;
  /** The iteration over the events has ended, failed or been left. */
  readonly onStreamEnd?: () => void;
};

/** Gets each call when it begins. Returns `undefined` when it does not need the rest. */
export type PortSubscriber = (call: PortCall) => CallHandlers | undefined;

type ObserverOptions = {
  readonly subscribers: readonly PortSubscriber[];
  readonly causes: CallCauses;
  /**
   * Has the current call while it is made, for subscribers that need that. On Node 20 it makes every promise of the
   * process slower.
   */
  readonly currentCall?: AsyncLocalStorage<PortCall> | undefined;
};

type Act = (...args: readonly unknown[]) => Promise<Result<unknown>>;

/** Returns the same port, whose calls and events the subscribers get. Without a subscriber it is the port itself. */
export function observePort(
  jobs: JobApi,
  { subscribers, causes, currentCall }: ObserverOptions,
): JobApi {
  if (subscribers.length === 0) return jobs;
  const methods = Object.keys(V2_CALLS) as (keyof JobApi)[];
  return Object.fromEntries(
    methods.map((method) => [method, (...args: readonly unknown[]) => observe(method, args)]),
  ) as unknown as JobApi;

  async function observe(method: keyof JobApi, args: readonly unknown[]): Promise<Result<unknown>> {
    const call = new PortCall(method, args, causes);
    const handlers = subscribers.flatMap((subscriber) => subscriber(call) ?? []);
    const startedAt = performance.now();
    const act = (): Promise<Result<unknown>> => (jobs[method] as Act)(...args);
    let answer: Result<unknown>;
    try {
      answer = await (currentCall ? currentCall.run(call, act) : act());
    } catch (error) {
      for (const { onFailure } of handlers) onFailure?.(performance.now() - startedAt);
      throw error;
    }
    call.noteAnswer(answer);
    const ms = performance.now() - startedAt;
    for (const { onAnswer } of handlers) onAnswer?.(answer, ms);
    return method === 'events' ? observeEvents(answer, handlers) : answer;
  }
}

/** Returns the answer with its stream observed. To end the iteration ends the source at once. */
function observeEvents(
  answer: Result<unknown>,
  handlers: readonly CallHandlers[],
): Result<unknown> {
  const isWanted = handlers.some(({ onEvent, onStreamEnd }) => onEvent ?? onStreamEnd);
  if (!answer.ok || !isWanted) return answer;
  const events = answer.value as AsyncIterable<JobEvent>;
  const end = (): void => handlers.forEach(({ onStreamEnd }) => onStreamEnd?.());
  const observed: AsyncIterable<JobEvent> = {
    [Symbol.asyncIterator]() {
      const source = events[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await source.next();
            if (result.done === true) end();
            else for (const { onEvent } of handlers) onEvent?.(result.value);
            return result;
          } catch (error) {
            end();
            throw error;
          }
        },
        async return(value: unknown) {
          end();
          return (await source.return?.(value)) ?? { done: true, value: undefined };
        },
      };
    },
  };
  return { ...answer, value: observed };
}
