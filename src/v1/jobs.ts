import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import { type JobView, jobDetail, jobItem, jobStatus, viewStatus } from '../translate/job-views.ts';
import { type ListedStatus, liveWord } from '../translate/status.ts';
import type { Logger } from '../telemetry.ts';
import { type Json, type JsonObject, parseJson } from '../wire/json.ts';
import type { JobApi } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
import type { StatusWord } from '../wire/v1.ts';
import type { Board, LivePrompt } from './board.ts';
import { readJson } from './body.ts';
import { V1Error, sendJson } from './errors.ts';
import { entryOf, findDone, integerOf } from './history.ts';
import { cancelPrompts, idList, objectBody } from './queue.ts';
import type { V1Request, V1Route } from './routes.ts';

type Deps = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly board: Board;
  readonly log: Logger;
  readonly maxBodyBytes: number;
};

const LISTED = [
  'pending',
  'in_progress',
  'completed',
  'failed',
  'cancelled',
] as const satisfies ListedStatus[];

/** Both vocabularies: local servers sort by one pair of words, hosted ones by the other. */
const SORT_KEYS: { readonly [name: string]: (entry: Entry) => number } = {
  created_at: (entry) => entry.createdAtMs,
  create_time: (entry) => entry.createdAtMs,
  execution_duration: durationMs,
  execution_time: durationMs,
};

/** The limit front ends use themselves; their schema needs a number. */
const DEFAULT_LIMIT = 200;

/** `/api/jobs…` of newer front ends and `/api/job/{id}/status` of the hosted API. */
export function jobRoutes(deps: Deps): readonly V1Route[] {
  return [
    { method: 'GET', path: '/api/jobs', handle: (request) => list(deps, request) },
    { method: 'GET', path: '/api/jobs/:id', handle: (request) => detail(deps, request) },
    { method: 'POST', path: '/api/jobs/cancel', handle: (request) => cancelMany(deps, request) },
    { method: 'POST', path: '/api/jobs/:id/cancel', handle: (request) => cancelOne(deps, request) },
    { method: 'GET', path: '/api/job/:id/status', handle: (request) => status(deps, request) },
  ];
}

async function list(deps: Deps, { ctx, caller, query }: V1Request): Promise<void> {
  const wanted = statusesOf(query.get('status'));
  const limit = integerOf(query, 'limit') ?? DEFAULT_LIMIT;
  if (limit <= 0) throw badRequest('"limit" must be a positive integer.');
  const offset = Math.max(0, integerOf(query, 'offset') ?? 0);
  const workflowId = query.get('workflow_id');
  const rows = await deps.ledger.prompts.history(caller.user, {});
  const found = [...rows.map(doneEntry), ...deps.board.of(caller.user).map(liveEntry)]
    .filter((entry) => wanted.includes(viewStatus(entry)))
    .filter((entry) => workflowId === null || jobItem(entry.view()).workflow_id === workflowId)
    .toSorted(byQuery(query));
  const shown = found.slice(offset, offset + limit).map((entry) => entry.view());
  sendJson(ctx, {
    jobs: shown.map(jobItem),
    pagination: {
      offset,
      limit,
      total: found.length,
      has_more: offset + shown.length < found.length,
    },
  });
}

async function detail(deps: Deps, { ctx, caller, params }: V1Request): Promise<void> {
  const view = await find(deps, caller.user, params.id ?? '');
  if (!view) throw new V1Error(404, { error: 'Job not found' });
  sendJson(ctx, jobDetail(view));
}

async function status(deps: Deps, { ctx, caller, params }: V1Request): Promise<void> {
  const view = await find(deps, caller.user, params.id ?? '');
  if (!view) throw new V1Error(404, { code: 'not_found', message: 'Job not found' });
  sendJson(ctx, jobStatus(view));
}

/** Never a 404: an id nobody knows was not cancelled. */
async function cancelOne(deps: Deps, { ctx, caller, params }: V1Request): Promise<void> {
  const prompt = deps.board.find(caller.user, params.id ?? '');
  if (prompt) await cancelPrompts(deps, [prompt]);
  sendJson(ctx, { cancelled: prompt !== undefined });
}

async function cancelMany(deps: Deps, { ctx, caller }: V1Request): Promise<void> {
  const body = objectBody(await readJson(ctx, deps.maxBodyBytes));
  const ids = idList(body.job_ids, 'job_ids');
  const prompts = ids.flatMap((id) => deps.board.find(caller.user, id) ?? []);
  await cancelPrompts(deps, prompts);
  sendJson(ctx, { cancelled: prompts.length > 0 });
}

async function find(deps: Deps, user: string, id: string): Promise<JobView | undefined> {
  const live = deps.board.find(user, id);
  if (live) return liveView(live);
  const done = await findDone(deps.ledger, user, id);
  return done && doneView(done);
}

/** Enough of a prompt to sort and filter by; its texts are parsed only when it is shown. */
type Entry = Pick<JobView, 'word' | 'createdAtMs' | 'startedAtMs' | 'endedAtMs'> & {
  readonly view: () => JobView;
};

function liveEntry(prompt: LivePrompt): Entry {
  return { ...liveView(prompt), view: () => liveView(prompt) };
}

function doneEntry(row: PromptRow): Entry {
  const { createdAtMs, startedAtMs, endedAtMs } = row;
  return { word: wordOf(row), createdAtMs, startedAtMs, endedAtMs, view: () => doneView(row) };
}

function wordOf(row: PromptRow): StatusWord {
  return (row.statusWord ?? 'lost') as StatusWord;
}

function liveView(prompt: LivePrompt): JobView {
  const { createdAtMs, startedAtMs } = prompt;
  return {
    submitted: prompt,
    word: liveWord(prompt),
    createdAtMs,
    startedAtMs,
    endedAtMs: null,
    entry: null,
  };
}

function doneView(row: PromptRow): JobView {
  const { createdAtMs, startedAtMs, endedAtMs } = row;
  return {
    submitted: {
      number: row.number,
      promptId: row.promptId,
      graph: parseJson(row.graphJson) as Graph,
      extraData: parseJson(row.extraDataJson) as JsonObject,
      targets: parseJson(row.targetsJson) as readonly string[],
    },
    word: wordOf(row),
    createdAtMs,
    startedAtMs,
    endedAtMs,
    entry: entryOf(row),
  };
}

function statusesOf(text: string | null): readonly ListedStatus[] {
  if (text === null || text === '') return LISTED;
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !LISTED.some((known) => known === name));
  if (unknown.length > 0) throw badRequest(`Unknown status: ${unknown.join(', ')}`);
  return LISTED.filter((known) => names.includes(known));
}

function byQuery(query: URLSearchParams): (a: Entry, b: Entry) => number {
  const name = query.get('sort_by') ?? 'created_at';
  const order = query.get('sort_order') ?? 'desc';
  const key = Object.hasOwn(SORT_KEYS, name) ? SORT_KEYS[name] : undefined;
  if (!key) throw badRequest(`Unknown sort_by: ${name}`);
  if (order !== 'asc' && order !== 'desc') throw badRequest(`Unknown sort_order: ${order}`);
  return (a, b) => (order === 'asc' ? key(a) - key(b) : key(b) - key(a));
}

function durationMs(view: Entry): number {
  return view.startedAtMs === null || view.endedAtMs === null
    ? 0
    : view.endedAtMs - view.startedAtMs;
}

function badRequest(message: string): V1Error {
  return new V1Error(400, { error: message } satisfies Json);
}
