import { type Json, type JsonObject, isJsonObject, parseJson } from '../wire/json.ts';
import type { JobApi } from '../wire/jobs.ts';
import { pythonTruth } from '../wire/python-text.ts';
import type { Logger } from '../telemetry.ts';
import { queueItem } from '../translate/history.ts';
import type { Board, LivePrompt } from './board.ts';
import { readJson, readText } from './body.ts';
import { V1Error, plainError, sendEmpty, sendJson } from './errors.ts';
import type { V1Request, V1Route } from './routes.ts';

type Deps = {
  readonly jobs: JobApi;
  readonly board: Board;
  readonly log: Logger;
  readonly maxBodyBytes: number;
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

/** Asks for the end of each prompt; its follower tells the sockets what really happened. */
export async function cancelPrompts(
  { jobs, log }: Pick<Deps, 'jobs' | 'log'>,
  prompts: readonly LivePrompt[],
): Promise<void> {
  await Promise.all(
    prompts.map(async (prompt) => {
      prompt.cancelAsked = true;
      const result = await jobs.cancel(prompt.caller, prompt.jobId);
      if (!result.ok)
        log.warn({ jobId: prompt.jobId, code: result.error.code }, 'cancel was refused');
    }),
  );
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
  return value.map(String);
}

function showQueue({ board }: Deps, { ctx, caller }: V1Request): void {
  const running = board.running(caller.user);
  const pending = board.of(caller.user).filter((prompt) => !running.includes(prompt));
  sendJson(ctx, {
    queue_running: running.map(queueItem),
    queue_pending: pending.map(queueItem),
  } as unknown as Json);
}

/**
 * The hosted path cancels pending and running jobs (spec 3), the local one only pending ones:
 * its clients look at the queue again and interrupt what still runs.
 */
async function editQueue(deps: Deps, { ctx, caller }: V1Request): Promise<void> {
  const body = objectBody(await readJson(ctx, deps.maxBodyBytes));
  const { board } = deps;
  const hosted = ctx.state.apiPrefixed === true;
  const mayCancel = (prompt: LivePrompt) => hosted || prompt.status === 'queued';
  const named = new Set([...idList(body.delete, 'delete'), ...idList(body.cancel, 'cancel')]);
  const chosen = board
    .of(caller.user)
    .filter((prompt) =>
      named.has(prompt.promptId) || named.has(prompt.jobId)
        ? mayCancel(prompt)
        : pythonTruth(body.clear) && prompt.status === 'queued',
    );
  await cancelPrompts(deps, chosen);
  sendEmpty(ctx);
}

/** A named prompt only if it runs; without a name what runs now. Always 200, also when idle. */
async function interrupt(deps: Deps, { ctx, caller }: V1Request): Promise<void> {
  const body = lenientBody(await readText(ctx, deps.maxBodyBytes));
  const running = deps.board.running(caller.user);
  const id = body.prompt_id;
  const chosen = pythonTruth(id)
    ? running.filter((prompt) => prompt.promptId === id || prompt.jobId === id)
    : running;
  await cancelPrompts(deps, chosen);
  sendEmpty(ctx);
}

/** Nothing is held that could be freed; the call is understood and done. */
async function free(deps: Deps, { ctx }: V1Request): Promise<void> {
  objectBody(await readJson(ctx, deps.maxBodyBytes));
  sendEmpty(ctx);
}

/** v1 takes an empty or unreadable body as `{}` here and only here. */
function lenientBody(text: string): JsonObject {
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    return {};
  }
  return objectBody(value);
}

export function objectBody(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw new V1Error(400, plainError('invalid_request', 'The body must be a JSON object.'));
}
