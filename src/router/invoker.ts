import type { ModelRequest, Invocation } from './authentication.ts';
import type { ModelCallStore } from '../ledger/ledger.ts';
import type { BodyReader, HttpExchange } from '../http/json-body.ts';
import type { Logger } from '../observability/log.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { type Json, isJsonObject, stringifyJson } from '../protocol/json.ts';
import { isClientGone, type CallConnection } from '../http/client-connection.ts';
import type { ModelLimits } from './limits.ts';
import { type ModelDef, modelId } from './model-def.ts';
import { type CallResult, DISCONNECTED, ModelRunner } from './runner.ts';
import { type Replays, fingerprintOf, type KeyHold } from './replays.ts';
import {
  type RouterReply,
  type ReplyError,
  replyError,
  replyInvalid,
  Unavailable,
} from './reply.ts';
import { type Validate, createValidate } from './validate-input.ts';
import type { Bucket } from '../protocol/router.ts';

type InvokeOptions = {
  readonly models: readonly ModelDef[];
  readonly modelCalls: ModelCallStore;
  readonly replays: Replays;
  readonly limits: ModelLimits;
  readonly bodies: BodyReader;
  readonly log: Logger;
  readonly now: () => number;
};

/** A call whose body has been read. */
type ReadCall = Invocation & {
  readonly model: string;
  readonly key: string | undefined;
  readonly body: Json;
  readonly startedAtMs: number;
};

type RefusedCall = ModelRequest & { readonly model: string; readonly startedAtMs?: number };

const MAX_KEY_CHARS = 255;

/**
 * Serves calls of models: runs a model once for each key, on validated input. The answer is stored
 * before it is sent.
 */
export class ModelInvoker {
  readonly #options: InvokeOptions;
  readonly #runner: ModelRunner;
  readonly #validators: ReadonlyMap<ModelDef, Validate>;
  readonly #calls = new Set<Promise<unknown>>();

  constructor(options: InvokeOptions) {
    this.#options = options;
    this.#runner = new ModelRunner({ ...options, ...options.limits });
    this.#validators = new Map(options.models.map((model) => [model, createValidate(model)]));
  }

  call(invocation: Invocation): Promise<RouterReply> {
    return this.#trackCall(this.#serve(invocation));
  }

  /** Records a call that is refused before its model is known. Returns the refusal. */
  refuse(
    request: ModelRequest & { readonly model: string },
    refusal: ReplyError,
  ): Promise<RouterReply> {
    return this.#trackCall(this.#refuse(request, refusal));
  }

  /** Ends the running calls. Their keys are free again. */
  async close(): Promise<void> {
    this.#runner.stop();
    await Promise.allSettled(this.#calls);
  }

  #trackCall(call: Promise<RouterReply>): Promise<RouterReply> {
    this.#calls.add(call);
    return call.finally(() => this.#calls.delete(call));
  }

  async #serve(invocation: Invocation): Promise<RouterReply> {
    const { bodies, limits, now } = this.#options;
    const { ctx, def } = invocation;
    const startedCall = { ...invocation, model: modelId(def), startedAtMs: now() };
    const key = ctx.req.headers['idempotency-key'] as string | undefined;
    const fault = key === undefined ? undefined : faultOfKey(key);
    if (fault) return await this.#refuse(startedCall, replyError('invalid_input', fault));
    const input = await readInput(bodies, ctx, limits.maxInputBytes);
    if ('bucket' in input) return await this.#refuse(startedCall, input);
    if (def.input === undefined && !isJsonObject(input.body)) {
      const detail = 'The body must be a JSON object.';
      return await this.#refuse(startedCall, replyError('invalid_input', detail));
    }
    const call = { ...startedCall, ...input, key };
    return key === undefined
      ? await this.#checkAndRun(call)
      : await this.#serveKeyed({ ...call, key });
  }

  async #refuse(request: RefusedCall, refusal: ReplyError): Promise<RouterReply> {
    const result = { reply: isClientGone(request.ctx) ? DISCONNECTED : refusal, cents: 0 };
    const startedAtMs = this.#options.now();
    return await settle({ startedAtMs, ...request, result }, this.#options);
  }

  async #serveKeyed(call: ReadCall & { key: string }): Promise<RouterReply> {
    const { ctx, key, model, requestId, body, modelCaller } = call;
    const fingerprint = fingerprintOf([ctx.method, model, ctx.querystring, stringifyJson(body)]);
    // The specification says (2): "Keys belong to a workspace". Without a keys file each key is a
    // workspace of its own.
    const scope = modelCaller.workspace;
    const hold = await this.#options.replays.hold({ scope, key, fingerprint, requestId });
    if ('status' in hold) {
      const result = { reply: hold, cents: 0, replayed: true };
      return await settle({ ...call, result }, this.#options);
    }
    try {
      return await this.#checkAndRun({ ...call, hold });
    } catch (error) {
      await hold.release().catch(() => {});
      throw error;
    } finally {
      hold.end();
    }
  }

  async #checkAndRun(call: ReadCall & { hold?: KeyHold }): Promise<RouterReply> {
    const record = (result: CallResult) => settle({ ...call, result }, this.#options);
    const checked = await (this.#validators.get(call.def) as Validate)(call.body);
    if (!checked.ok) return await record({ reply: replyInvalid(checked.detail), cents: 0 });
    return await this.#runner.run({ ...call, input: checked.input }, record);
  }
}

function faultOfKey(key: string): string | undefined {
  if (key === '' || key.length > MAX_KEY_CHARS)
    return `Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters.`;
  return hasControlCharacter(key) ? 'Idempotency-Key has a control character.' : undefined;
}

type SettledCall = ModelRequest & {
  /** The requested id; a model with it may not exist. */
  readonly model: string;
  readonly startedAtMs: number;
  readonly result: CallResult;
  /** The key of the call, if it has one and is not a replay. */
  readonly hold?: KeyHold;
};

/**
 * Records the end of a call and returns its answer, which is sent after that. Corrects the record
 * when the answer is lost.
 */
async function settle(call: SettledCall, options: InvokeOptions): Promise<RouterReply> {
  const { ctx, model, requestId, modelCaller, startedAtMs, result, hold } = call;
  const record = options.modelCalls.insert({
    requestId,
    workspace: modelCaller.workspace,
    user: modelCaller.caller.user,
    model,
    startedAtMs,
    endedAtMs: options.now(),
    status: result.reply.status,
    errorType: result.reply.bucket ?? null,
    chargedCents: result.cents,
    replayed: result.replayed ?? false,
  });
  // Started in one iteration of the event loop, and so in one transaction: charged and stored, or
  // neither.
  const written = await Promise.allSettled([record, hold?.settle(result.reply)]);
  const failure = written.find((each) => each.status === 'rejected');
  if (failure) throw new Unavailable('the call could not be recorded', { cause: failure.reason });
  watchDelivery(ctx, (sent) => {
    recordUndelivered(call, sent, options).catch((error: unknown) =>
      options.log.error(
        { event: 'models.record_failed', err: error, requestId },
        'could not record an undelivered answer',
      ),
    );
  });
  return result.reply;
}

/** The part of an undelivered answer that was sent. */
type SentPart = 'nothing' | 'a part';

/**
 * Calls back when an answer did not arrive completely, and says if part of it was sent. Node emits
 * `finish` even for a broken connection, so that event counts only while the connection exists.
 */
function watchDelivery(ends: CallConnection, onUndelivered: (sent: SentPart) => void): void {
  const { req, res } = ends;
  let isDelivered = false;
  const reportUndelivered = (): void => {
    if (!isDelivered) onUndelivered(res.headersSent ? 'a part' : 'nothing');
  };
  if (isClientGone(ends)) return reportUndelivered();
  res.once('finish', () => void (isDelivered = !req.socket.destroyed));
  res.once('close', reportUndelivered);
}

/**
 * Records an undelivered answer. If no byte reached the caller, nothing is charged and the key is
 * free; if a part did, the key is used up.
 */
async function recordUndelivered(
  { requestId, result, hold }: SettledCall,
  sent: SentPart,
  { modelCalls }: InvokeOptions,
): Promise<void> {
  const errorType = 'client_disconnected' satisfies Bucket;
  const amended = { errorType, chargedCents: sent === 'a part' ? result.cents : 0 };
  await Promise.all([
    modelCalls.amend(requestId, amended),
    sent === 'a part' ? hold?.consume() : hold?.release(),
  ]);
}

/** Reads the body of a call, or refuses it. */
async function readInput(
  bodies: BodyReader,
  exchange: HttpExchange,
  maxBytes: number,
): Promise<{ readonly body: Json } | ReplyError> {
  const read = await bodies.read(exchange, { maxBytes });
  if (read.ok) return { body: read.value };
  const { status, message, isSyntax, retryAfterSeconds } = read;
  if (status === 503) {
    const headers = { Connection: 'close', 'Retry-After': String(retryAfterSeconds) };
    return replyError('service_unavailable', message, { headers });
  }
  // The rest of a refused body is not read.
  const headers = isSyntax ? {} : { Connection: 'close' };
  return replyError('invalid_input', message, { status, headers });
}
