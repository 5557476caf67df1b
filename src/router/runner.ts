import type { ModelCallStore } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { Json, JsonObject } from '../protocol/json.ts';
import type { Bucket } from '../protocol/router.ts';
import { isClientGone } from '../http/client-connection.ts';
import type { Invocation, ModelCaller } from './authentication.ts';
import { modelId, type ModelOutcome } from './model-def.ts';
import { type RouterReply, replyError, replyInvalid, type ReplyError } from './reply.ts';

/** The reply to a call, and its cost. */
export type CallResult = {
  readonly reply: RouterReply;
  readonly cents: number;
  readonly replayed?: boolean;
};

type CheckedCall = Invocation & {
  readonly input: JsonObject;
  readonly body: Json;
  readonly key: string | undefined;
};

type ModelRunnerOptions = {
  readonly modelCalls: ModelCallStore;
  readonly deadlineMs: number;
  readonly log: Logger;
};

/** A validated call and its price. */
type PricedCall = CheckedCall & { readonly cents: number };

/**
 * Runs validated calls within the credits and the deadlines of their callers, while the client is
 * connected.
 */
export class ModelRunner {
  readonly #options: ModelRunnerOptions;
  readonly #workspaces = new Map<string, Running>();
  readonly #stops = new Set<AbortController>();

  constructor(options: ModelRunnerOptions) {
    this.#options = options;
  }

  /**
   * Reserves a running call, runs the model on its validated input and records the result. The
   * cost counts as committed until it is recorded.
   */
  async run(
    call: CheckedCall,
    record: (result: CallResult) => Promise<RouterReply>,
  ): Promise<RouterReply> {
    const pricedCall = { ...call, cents: call.def.priceCents?.(call.input) ?? 0 };
    const { cents, modelCaller } = pricedCall;
    const { workspace } = modelCaller;
    const refusal =
      (await refuseCredits(pricedCall, () => this.#runningOf(workspace), this.#options)) ??
      refuse(this.#runningOf(workspace), cents, modelCaller);
    if (refusal) return await record({ reply: refusal, cents: 0 });
    this.#count(workspace, 1, cents);
    try {
      const end = await this.#runUntilEnd(pricedCall);
      return await record(resultOf(pricedCall, end, this.#options));
    } finally {
      this.#count(workspace, -1, -cents);
    }
  }

  /** Ends the running calls. */
  stop(): void {
    for (const stop of this.#stops) stop.abort(CLOSING);
  }

  #runningOf(workspace: string): Running {
    return this.#workspaces.get(workspace) ?? { calls: 0, cents: 0 };
  }

  #count(workspace: string, calls: number, cents: number): void {
    const before = this.#runningOf(workspace);
    const running = { calls: before.calls + calls, cents: before.cents + cents };
    if (running.calls === 0) this.#workspaces.delete(workspace);
    else this.#workspaces.set(workspace, running);
  }

  /**
   * Runs a model until it answers or is stopped. An answer that is ready at that moment still counts.
   */
  async #runUntilEnd({ ctx, def, modelCaller, input, body }: PricedCall): Promise<RunEnd> {
    const { deadlineMs } = this.#options;
    const stop = new AbortController();
    const { signal } = stop;
    const disconnect = (): void => stop.abort(DISCONNECTED);
    this.#stops.add(stop);
    ctx.res.once('close', disconnect);
    if (isClientGone(ctx)) disconnect();
    const timer = setTimeout(() => stop.abort(tooSlow(deadlineMs)), deadlineMs);
    try {
      const call = { input, body, caller: modelCaller.caller, signal };
      const run = async (): Promise<RunEnd> => await def.run(call);
      return await Promise.race([
        run().catch((cause: unknown): RunEnd =>
          signal.aborted ? stopEnd(signal) : { kind: 'crashed', cause },
        ),
        whenStopped(signal),
      ]);
    } finally {
      clearTimeout(timer);
      ctx.res.off('close', disconnect);
      this.#stops.delete(stop);
    }
  }
}

/** Refuses a call that costs more than its workspace has. Comes first: waiting does not add credits. */
async function refuseCredits(
  { modelCaller, cents }: PricedCall,
  running: () => Running,
  { modelCalls }: ModelRunnerOptions,
): Promise<ReplyError | undefined> {
  const { workspace, creditsCents } = modelCaller;
  if (creditsCents === undefined || cents === 0) return undefined;
  const charged = await modelCalls.chargedCents(workspace);
  if (charged + running().cents + cents <= creditsCents) return undefined;
  const detail = `This call costs ${cents} cents, more than the workspace has left.`;
  return replyError('insufficient_credits', detail);
}

function resultOf(pricedCall: PricedCall, end: RunEnd, { log }: ModelRunnerOptions): CallResult {
  const { cents, def, requestId } = pricedCall;
  switch (end.kind) {
    case 'answer': {
      const { contentType, body } = end;
      return { reply: { status: 200, contentType, body }, cents };
    }
    case 'invalid':
      return { reply: replyInvalid(end.detail), cents: 0 };
    case 'failed':
      return {
        reply: replyError(end.bucket, end.detail),
        cents: costOfFailure(pricedCall, end.bucket),
      };
    case 'crashed':
      log.error(
        { event: 'models.model_failed', err: end.cause, requestId, model: modelId(def) },
        'a model failed',
      );
      return { reply: replyError('provider_error', 'The model failed.'), cents: 0 };
    case 'stopped':
      return { reply: end.reply, cents: 0 };
  }
}

/** The replies to calls that are stopped before their models are done. */
export const DISCONNECTED = replyError('client_disconnected', 'The caller closed the connection.');
const CLOSING = replyError('service_unavailable', 'The server is stopping.');

function tooSlow(deadlineMs: number): ReplyError {
  const detail = `The call took longer than ${deadlineMs / 1000} seconds and was cancelled.`;
  return replyError('deadline_exceeded', detail);
}

/**
 * Returns the cost of a failure. A time-out of the provider is billed. Under a key only an answer
 * is billed: the key is free again, and is charged at most once.
 */
function costOfFailure({ def, key, cents }: PricedCall, bucket: Bucket): number {
  if (bucket === 'provider_timeout') return key === undefined ? cents : 0;
  const charges = def.billing.charges_on_policy_rejection === 'yes';
  return bucket === 'content_policy_violation' && charges ? cents : 0;
}

/** How a run ended. `crashed`: the model threw an error. */
type RunEnd =
  | ModelOutcome
  | { readonly kind: 'stopped'; readonly reply: ReplyError }
  | { readonly kind: 'crashed'; readonly cause: unknown };

/** Resolves one event loop iteration later, so that an answer at the same moment has priority. */
function whenStopped(signal: AbortSignal): Promise<RunEnd> {
  return new Promise((resolve) => {
    const resolveLater = (): void => void setImmediate(() => resolve(stopEnd(signal)));
    if (signal.aborted) resolveLater();
    else signal.addEventListener('abort', resolveLater, { once: true });
  });
}

function stopEnd(signal: AbortSignal): RunEnd {
  return { kind: 'stopped', reply: signal.reason as ReplyError };
}

/** The running calls of a workspace, and what they may cost together, in US cents. */
type Running = { readonly calls: number; readonly cents: number };

function refuse(running: Running, cents: number, ceilings: ModelCaller): ReplyError | undefined {
  if (running.calls >= ceilings.inFlight) {
    const most = `at most ${ceilings.inFlight} calls of a workspace run at a time`;
    return replyError('concurrency_limit_exceeded', `In-flight limit: ${most}.`);
  }
  const { committedCents: limit } = ceilings;
  if (running.cents + cents <= limit) return undefined;
  const headers = {
    'X-Committed-Spend-Limit': String(limit),
    'X-Committed-Spend-Current': String(running.cents),
    'X-Committed-Spend-Remaining': String(Math.max(0, limit - running.cents)),
  };
  const detail =
    `Committed-spend ceiling: running calls are committed to ${running.cents} of ${limit} cents, ` +
    `and this one costs ${cents}.`;
  return replyError('concurrency_limit_exceeded', detail, { headers });
}
