import type Koa from 'koa';
import type { ModelCallStore } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type Json, isJsonObject } from '../wire/json.ts';
import { createReadInput } from './input.ts';
import type { ModelLimits } from './limits.ts';
import { type ModelDef, modelId } from './model.ts';
import { type Done, createPerformer } from './perform.ts';
import { type Replays, fingerprintOf } from './replay.ts';
import { type Reply, replyError, replyInvalid } from './reply.ts';
import { settle } from './settle.ts';
import { type Validate, createValidate } from './validate.ts';
import type { Visitor } from './visitor.ts';

/** One call of a model as it came in. */
export type Invocation = {
  readonly ctx: Koa.Context;
  readonly def: ModelDef;
  readonly visitor: Visitor;
  readonly requestId: string;
};

/** What serves calls of models. */
export type Invoke = {
  call(invocation: Invocation): Promise<Reply>;
  /** Ends the running calls; their keys are free again. */
  close(): Promise<void>;
};

type Deps = {
  readonly models: readonly ModelDef[];
  readonly modelCalls: ModelCallStore;
  readonly replays: Replays;
  readonly limits: ModelLimits;
  readonly log: Logger;
  readonly now: () => number;
};

/** A call whose body has been read. */
type Call = Invocation & {
  readonly key: string | undefined;
  readonly body: Json;
  readonly text: string;
  readonly startedAtMs: number;
};

const MAX_KEY_CHARS = 255;

/** Runs models: once for each key, on checked input, the answer kept before it goes out. */
export function createInvoke(deps: Deps): Invoke {
  const readInput = createReadInput(deps.limits);
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
    const { ctx, def, key, requestId, text, visitor } = call;
    const fingerprint = fingerprintOf([ctx.method, modelId(def), ctx.querystring, text]);
    const scope = visitor.caller.user;
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
  const serve = async (invocation: Invocation): Promise<Reply> => {
    const { ctx, def } = invocation;
    const startedAtMs = deps.now();
    const key = keyOf(ctx);
    if (key !== undefined && (key === '' || key.length > MAX_KEY_CHARS)) {
      const detail = `Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters.`;
      return replyError('invalid_input', detail);
    }
    const input = await readInput(ctx.req);
    if (!input.ok) return input.refusal;
    try {
      if (def.input === undefined && !isJsonObject(input.body)) {
        return replyError('invalid_input', 'The body must be a JSON object.');
      }
      const call = { ...invocation, ...input, key, startedAtMs };
      if (key !== undefined) return await serveKeyed({ ...call, key });
      const done = await perform(call);
      await settle({ ...call, done }, deps);
      return done.reply;
    } finally {
      input.done();
    }
  };
  return {
    async call(invocation) {
      const call = serve(invocation);
      calls.add(call);
      try {
        return await call;
      } finally {
        calls.delete(call);
      }
    },
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
