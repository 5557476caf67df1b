import type { BodyReader } from '../http/json-body.ts';
import { type Json, type JsonObject, isJsonObject } from '../wire/json.ts';
import { pythonTruth } from '../wire/python-text.ts';
import { type LivePrompts, type LivePrompt, hasEnded, isNotStarted } from './board.ts';
import { readJson, readJsonIfAny } from './body.ts';
import type { Cancel } from './cancel.ts';
import { type DialectRules, rulesFor } from './dialect.ts';
import { V1Error, plainError, sendEmpty, sendJson } from './errors.ts';
import { byCreation } from './turn.ts';
import { sendJsonPieces } from './streamed-json.ts';
import { toJsonText } from './kept.ts';
import { printable } from './printable.ts';
import type { V1Request, V1Route } from './routes.ts';

type Deps = {
  readonly livePrompts: LivePrompts;
  readonly cancel: Cancel['cancel'];
  readonly bodies: BodyReader;
};

/** More ids than this in one call is not a queue any client could show. */
const MAX_IDS = 10_000;

/** `/queue`, `/interrupt`, `/free`: v1's way of looking at and stopping jobs. */
export function queueRoutes(deps: Deps): readonly V1Route[] {
  return [
    { method: 'GET', path: '/queue', handle: (request) => showQueue(deps, request) },
    { method: 'POST', path: '/queue', handle: (request) => editQueue(deps, request) },
    { method: 'POST', path: '/interrupt', handle: (request) => interrupt(deps, request) },
    { method: 'POST', path: '/free', handle: (request) => free(deps, request) },
  ];
}

/** Ids in a body's list member, refused when it is no list of strings. */
export function idList(value: Json | undefined, name: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_IDS) {
    throw new V1Error(
      400,
      plainError('invalid_request', `"${name}" must be a list of at most ${MAX_IDS} ids.`),
    );
  }
  return value.map((id) => printable(String(id), name));
}

async function showQueue({ livePrompts }: Deps, { ctx, caller }: V1Request): Promise<void> {
  const rules = rulesFor(ctx);
  const { running, pending } = shownQueue(livePrompts, caller.user, rules);
  const lists = [running.map(weakly), pending.map(weakly)] as const;
  await sendJsonPieces(ctx, queuePieces(lists, tupleOf(rules.queueItem)));
}

type ShownQueue = {
  readonly running: readonly LivePrompt[];
  readonly pending: readonly LivePrompt[];
};

/** Local clients may assert that one prompt runs at most: further ones are the first of those that wait. */
function shownQueue(
  livePrompts: LivePrompts,
  user: string,
  { queueRunning }: DialectRules,
): ShownQueue {
  const active = livePrompts.running(user);
  const running = queueRunning === 'one' ? active.toSorted(byStart).slice(0, 1) : active;
  const waiting = livePrompts
    .list(user)
    .filter((prompt) => !active.includes(prompt) && !hasEnded(prompt));
  return { running, pending: [...active.filter((one) => !running.includes(one)), ...waiting] };
}

function byStart(a: LivePrompt, b: LivePrompt): number {
  return (a.startedAtMs ?? Infinity) - (b.startedAtMs ?? Infinity) || byCreation(a, b);
}

/** A client that takes its time must not keep prompts in memory that have ended. */
type Weak = WeakRef<LivePrompt>;

function weakly(prompt: LivePrompt): Weak {
  return new WeakRef(prompt);
}

function* queuePieces(
  [running, pending]: readonly [readonly Weak[], readonly Weak[]],
  tuple: Tuple,
): Generator<string, undefined> {
  yield '{"queue_running":[';
  yield* itemPieces(running, tuple);
  yield '],"queue_pending":[';
  yield* itemPieces(pending, tuple);
  yield ']}';
}

/** The members of a prompt's 5-tuple: before its graph, and after it. */
type Tuple = (
  prompt: LivePrompt,
  place: number,
) => { readonly before: Json; readonly after: readonly string[] };

function tupleOf(item: DialectRules['queueItem']): Tuple {
  return item === 'as-submitted' ? submittedTuple : scheduledTuple;
}

function submittedTuple({ number, promptId, lazy: kept, targets }: LivePrompt): ReturnType<Tuple> {
  return {
    before: [number, promptId],
    after: [toJsonText(kept.extraData), JSON.stringify(targets)],
  };
}

/** The hosted service's: the place in its list, and the time instead of `extra_data`. */
function scheduledTuple(
  { promptId, targets, createdAtMs }: LivePrompt,
  place: number,
): ReturnType<Tuple> {
  const metadata = { create_time: createdAtMs };
  return { before: [place, promptId], after: [targets, metadata].map((x) => JSON.stringify(x)) };
}

/** v1's 5-tuples, stitched from texts: clients poll thousands of them. */
function* itemPieces(prompts: readonly Weak[], tuple: Tuple): Generator<string, undefined> {
  let place = 0;
  for (const weak of prompts) {
    const prompt = weak.deref();
    if (prompt === undefined) continue;
    place++;
    const { before, after } = tuple(prompt, place);
    yield `${place === 1 ? '' : ','}${JSON.stringify(before).slice(0, -1)},`;
    yield toJsonText(prompt.lazy.graph);
    yield `,${after.join(',')}]`;
  }
}

/**
 * The hosted service cancels pending and running jobs (spec 3), the original only pending ones:
 * its clients look at the queue again and interrupt what still runs.
 */
async function editQueue(deps: Deps, { ctx, caller }: V1Request): Promise<void> {
  const body = objectBody(await readJson(ctx, deps.bodies));
  const { livePrompts } = deps;
  const rules = rulesFor(ctx);
  const { pending } = shownQueue(livePrompts, caller.user, rules);
  const isPending = (prompt: LivePrompt) => isNotStarted(prompt) || pending.includes(prompt);
  const cancelsAll = rules.queueDelete === 'pending-and-running';
  const named = new Set([...idList(body.delete, 'delete'), ...idList(body.cancel, 'cancel')]);
  const chosen = livePrompts
    .list(caller.user)
    .filter((prompt) =>
      isNamed(named, prompt)
        ? cancelsAll || isPending(prompt)
        : pythonTruth(body.clear) && isPending(prompt),
    );
  await deps.cancel(chosen, caller);
  if (rules.queueAnswer === 'empty') return sendEmpty(ctx);
  const deleted = chosen.map(({ promptId }) => promptId);
  sendJson(ctx, { deleted, cleared: pythonTruth(body.clear) });
}

function isNamed(ids: ReadonlySet<unknown>, { promptId, jobId }: LivePrompt): boolean {
  return ids.has(promptId) || (jobId !== null && ids.has(jobId));
}

/**
 * A named prompt if it runs, or waits here for its job; without a name what runs now. Always 200,
 * also when idle.
 */
async function interrupt(deps: Deps, { ctx, caller }: V1Request): Promise<void> {
  // v1 takes an empty or unreadable body as `{}` here and only here.
  const body = objectBody((await readJsonIfAny(ctx, deps.bodies)) ?? {});
  const running = deps.livePrompts.running(caller.user);
  const mayEnd = deps.livePrompts
    .list(caller.user)
    .filter((prompt) => prompt.jobId === null || running.includes(prompt));
  if (typeof body.prompt_id === 'string') printable(body.prompt_id, 'prompt_id');
  const named = new Set([body.prompt_id]);
  const chosen = pythonTruth(body.prompt_id)
    ? mayEnd.filter((prompt) => isNamed(named, prompt))
    : running;
  await deps.cancel(chosen, caller);
  sendEmpty(ctx);
}

/** Nothing is held that could be freed; the call is understood and done. */
async function free(deps: Deps, { ctx }: V1Request): Promise<void> {
  objectBody(await readJson(ctx, deps.bodies));
  sendEmpty(ctx);
}

export function objectBody(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw new V1Error(400, plainError('invalid_request', 'The body must be a JSON object.'));
}
