import type Koa from 'koa';
import type { ModelCallStore } from '../ledger/ledger.ts';
import type { BodyReader } from '../http/json-body.ts';
import type { Logger } from '../telemetry.ts';
import { hasControlCharacter } from '../wire/control-characters.ts';
import { type Json, isJsonObject } from '../wire/json.ts';
import { isGone } from './connection.ts';
import { createReadInput } from './input.ts';
import type { ModelLimits } from './limits.ts';
import { type ModelDef, modelId } from './model.ts';
import { type Done, createPerformer } from './perform.ts';
import { type Replays, fingerprintOf } from './replay.ts';
import { type Reply, type ReplyError, replyError, replyInvalid } from './reply.ts';
import { settle } from './settle.ts';
import { type Validate, createValidate } from './validate.ts';
import type { Visitor } from './visitor.ts';

/** One request that may be served. */
export type Visit = {
  readonly ctx: Koa.Context;
  readonly visitor: Visitor;
  readonly requestId: string;
};

/** One call of a model as it came in. */
export type Invocation = Visit & { readonly def: ModelDef };

/** What serves calls of models. */
export type Invoke = {
  call(invocation: Invocation): Promise<Reply>;
  /** Records a call that is refused before its model is known, and gives the refusal back. */
  refuse(visit: Visit & { readonly model: string }, refusal: ReplyError): Promise<Reply>;
  /** Ends the running calls; their keys are free again. */
  close(): Promise<void>;
};

type Deps = {
  readonly models: readonly ModelDef[];
  readonly modelCalls: ModelCallStore;
  readonly replays: Replays;
  readonly limits: ModelLimits;
  readonly bodies: BodyReader;
  readonly log: Logger;
  readonly now: () => number;
};

/** A call whose body has been read. */
type Call = Invocation & {
  readonly model: string;
  readonly key: string | undefined;
  readonly body: Json;
  readonly text: string;
  readonly startedAtMs: number;
};

type Refused = Visit & { readonly model: string; readonly startedAtMs?: number };

const MAX_KEY_CHARS = 255;

/** Runs models: once for each key, on checked input, the answer kept before it goes out. */
export function createInvoke(deps: Deps): Invoke {
  const readInput = createReadInput(deps.bodies, deps.limits);
  const performer = createPerformer({ ...deps, ...deps.limits });
  const checks = new Map<ModelDef, Validate>(deps.models.map((m) => [m, createValidate(m)]));
  const calls = new Set<Promise<unknown>>();

  const perform = async (call: Call): Promise<Done> => {
    const checked = (checks.get(call.def) as Validate)(call.body);
    if (!checked.ok) return { reply: replyInvalid(checked.detail), cents: 0 };
    const isKeyed = call.key !== undefined;
    return await performer.perform({ ...call, input: checked.input, isKeyed });
  };
  const serveKeyed = async (call: Call & { key: string }): Promise<Reply> => {
    const { ctx, key, model, requestId, text, visitor } = call;
    const fingerprint = fingerprintOf([ctx.method, model, ctx.querystring, text]);
    // Spec 2: "Keys belong to a workspace"; without a keys file each key is a workspace of its own.
    const scope = visitor.workspace;
    const held = await deps.replays.hold({ scope, key, fingerprint, requestId });
    if (held.kind === 'reply') {
      await settle({ ...call, done: { reply: held.reply, cents: 0, replayed: true } }, deps);
      return held.reply;
    }
    const { hold } = held;
    try {
      const done = await perform(call);
      await settle({ ...call, done, hold }, deps);
      return done.reply;
    } catch (error) {
      await hold.release().catch(() => {});
      throw error;
    } finally {
      hold.end();
    }
  };
  const refuse = async (visit: Refused, refusal: ReplyError): Promise<Reply> => {
    const reply = isGone(visit.ctx)
      ? replyError('client_disconnected', 'The caller closed the connection.')
      : refusal;
    await settle({ startedAtMs: deps.now(), ...visit, done: { reply, cents: 0 } }, deps);
    return reply;
  };
  const serve = async (invocation: Invocation): Promise<Reply> => {
    const { ctx, def } = invocation;
    const begun = { ...invocation, model: modelId(def), startedAtMs: deps.now() };
    const key = keyOf(ctx);
    if (key !== undefined && (key === '' || key.length > MAX_KEY_CHARS)) {
      const detail = `Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters.`;
      return await refuse(begun, replyError('invalid_input', detail));
    }
    if (key !== undefined && hasControlCharacter(key)) {
      const detail = 'Idempotency-Key has a control character.';
      return await refuse(begun, replyError('invalid_input', detail));
    }
    const input = await readInput(ctx);
    if (!input.ok) return await refuse(begun, input.refusal);
    try {
      if (def.input === undefined && !isJsonObject(input.body)) {
        const detail = 'The body must be a JSON object.';
        return await refuse(begun, replyError('invalid_input', detail));
      }
      const call = { ...begun, ...input, key };
      if (key !== undefined) return await serveKeyed({ ...call, key });
      const done = await perform(call);
      await settle({ ...call, done }, deps);
      return done.reply;
    } finally {
      input.done();
    }
  };
  const tracked = async (call: Promise<Reply>): Promise<Reply> => {
    calls.add(call);
    try {
      return await call;
    } finally {
      calls.delete(call);
    }
  };
  return {
    call: (invocation) => tracked(serve(invocation)),
    refuse: (visit, refusal) => tracked(refuse(visit, refusal)),
    async close() {
      performer.stop();
      await Promise.allSettled(calls);
    },
  };
}

function keyOf(ctx: Koa.Context): string | undefined {
  const key = ctx.req.headers['idempotency-key'];
  return Array.isArray(key) ? key.join(', ') : key;
}
