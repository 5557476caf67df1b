import type { Ledger, PromptOutline } from '../ledger/ledger.ts';
import {
  type ItemView,
  MEDIA_KINDS,
  type MediaKind,
  jobItem,
  outputTypesOf,
} from '../translate/job-views.ts';
import type { ResultForm } from '../translate/stored-history-entry.ts';
import { LISTED_STATUSES, type ListedStatus, LISTED_STATUS, wordOf } from '../translate/status.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import { jsonWeight } from '../protocol/json-steps.ts';
import { type JsonObject, stringifyJson } from '../protocol/json.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import { type DialectRules, rulesFor } from '../dialects/dialect.ts';
import { textError } from '../dialects/errors.ts';
import { sendJsonPieces } from '../http/json-stream.ts';
import type { MarkFetched } from '../prompts/mark-fetched.ts';
import { readInteger } from './routing/body.ts';
import { endedItemView, latestRuns, liveView } from './job-view.ts';
import type { V1Request } from './routes.ts';

type JobListServices = {
  readonly ledger: Ledger;
  readonly livePrompts: LivePrompts;
  readonly markFetched: MarkFetched;
};

/** The sort keys. Local servers sort by one pair of words, hosted ones by the other; both work. */
const SORT_KEYS: { readonly [name: string]: (entry: ListedJob) => number } = {
  created_at: (entry) => entry.createdAtMs,
  create_time: (entry) => entry.createdAtMs,
  execution_duration: durationMsOf,
  execution_time: durationMsOf,
};

/** `GET /api/jobs`: what front ends poll instead of queue and history. */
export async function listJobs(services: JobListServices, request: V1Request): Promise<void> {
  const { ctx, caller, query } = request;
  const wantedStatuses = statusesOf(query.get('status'));
  const sort = sorterFrom(query);
  const page = {
    limit: limitOf(query, rulesFor(ctx)),
    offset: Math.max(0, integerOf(query, 'offset') ?? 0),
  };
  const isWanted = filterOf(query);
  const entries = await listedJobsOf(services, caller.user, rulesFor(ctx).results);
  const sorted = sort(
    entries.filter((entry) => wantedStatuses.includes(LISTED_STATUS[entry.word])),
  );
  const found = isWanted ? await filterShown(sorted, isWanted) : sorted;
  await sendJsonPieces(
    ctx,
    listPieces(found, page, (ids) => services.markFetched(request, 'listed', ids)),
  );
}

type Page = { readonly limit: number | null; readonly offset: number };

/**
 * Yields the answer, one item after the other: entries may be large and many, while items are
 * small.
 */
async function* listPieces(
  found: readonly ListedJob[],
  { limit, offset }: Page,
  onListed: (endedIds: readonly string[]) => void,
): AsyncGenerator<string, undefined> {
  const shown = found.slice(offset, limit === null ? undefined : offset + limit);
  const ids: string[] = [];
  let before = '{"jobs":[';
  for (const entry of shown) {
    const item = (await entry.shown())?.item;
    if (item === undefined) continue;
    yield before + stringifyJson(item);
    before = ',';
    const { id, execution_end_time: endedAt } = item;
    if (typeof id === 'string' && endedAt !== undefined) ids.push(id);
  }
  onListed(ids);
  const total = found.length;
  const pagination = { offset, limit, total, has_more: offset + shown.length < total };
  yield `${before === ',' ? '' : before}],"pagination":${JSON.stringify(pagination)}}`;
}

/** The limit that front ends use themselves. */
const PAGE_LIMIT = 200;

function limitOf(query: URLSearchParams, { jobsListed }: DialectRules): number | null {
  const limit = integerOf(query, 'limit') ?? (jobsListed === 'all' ? null : PAGE_LIMIT);
  if (limit !== null && limit <= 0) throw textError(400, 'limit must be a positive integer');
  return limit;
}

function integerOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  const value = readInteger(text);
  if (text !== null && value === undefined) throw textError(400, `${name} must be an integer`);
  return value;
}

/** Returns the test of `workflow_id` and `output_type`; `undefined` when neither is asked for. */
function filterOf(query: URLSearchParams): ((shown: ShownJob) => boolean) | undefined {
  const workflowId = query.get('workflow_id') || null;
  const outputType = outputTypeOf(query.get('output_type'));
  if (workflowId === null && outputType === null) return undefined;
  return ({ item, outputTypes }) =>
    (workflowId === null || item.workflow_id === workflowId) &&
    (outputType === null || outputTypes.has(outputType));
}

/** The members that sorting and filtering need. The texts of a prompt are read when it is shown. */
type ListedJob = Pick<ItemView, 'word' | 'createdAtMs' | 'startedAtMs' | 'endedAtMs'> & {
  /** `undefined`: the prompt was deleted meanwhile. */
  readonly shown: () => Promise<ShownJob | undefined>;
};

type ShownJob = { readonly item: JsonObject; readonly outputTypes: ReadonlySet<string> };

/**
 * Lists the jobs, oldest first. A prompt that ends meanwhile is in at least one of the two lists.
 */
async function listedJobsOf(
  { ledger, livePrompts }: JobListServices,
  user: string,
  form: ResultForm,
): Promise<readonly ListedJob[]> {
  const listed = livePrompts.list(user);
  const ended = await ledger.prompts.outlines(user);
  const endedKeys = new Set(ended.map(({ key }) => key));
  const live = listed.filter(({ key }) => !endedKeys.has(key));
  return [
    ...latestRuns(ended).map((outline) => endedJob(ledger, outline, form)),
    ...live.map(liveJob),
  ];
}

async function filterShown(
  entries: readonly ListedJob[],
  isWanted: (shown: ShownJob) => boolean,
): Promise<readonly ListedJob[]> {
  const found: ListedJob[] = [];
  for (const entry of entries) {
    const shown = await entry.shown();
    if (shown && isWanted(shown)) found.push(entry);
  }
  return found;
}

function liveJob(prompt: LivePrompt): ListedJob {
  const view = liveView(prompt);
  return { ...view, shown: async () => shownJob(view) };
}

function shownJob(view: ItemView): ShownJob {
  return { item: jobItem(view), outputTypes: outputTypesOf(view) };
}

/** A larger item, which has the texts of an error in it, is made anew for each list. */
const MAX_KEPT_WEIGHT = 200;
/** Caches the items of ended prompts: an item never changes, and its texts may be large. */
const shownJobs = { own: new WeakMap(), documented: new WeakMap() } satisfies {
  readonly [form in ResultForm]: WeakMap<PromptOutline, ShownJob>;
};

function endedJob({ prompts }: Ledger, outline: PromptOutline, form: ResultForm): ListedJob {
  const { createdAtMs, startedAtMs, endedAtMs } = outline;
  const known: WeakMap<PromptOutline, ShownJob> = shownJobs[form];
  const read = async (): Promise<ShownJob | undefined> => {
    await pause(outline.storedBytes);
    const row = await prompts.get(outline.key);
    const shown = row && shownJob(endedItemView(row, form));
    if (shown && jsonWeight(shown.item, MAX_KEPT_WEIGHT) <= MAX_KEPT_WEIGHT)
      known.set(outline, shown);
    return shown;
  };
  const shown = async () => known.get(outline) ?? (await read());
  return { word: wordOf(outline), createdAtMs, startedAtMs, endedAtMs, shown };
}

/** The number of bytes that are parsed before other calls get their turn. */
const pause = yieldEvery(256 * 1024);

function statusesOf(text: string | null): readonly ListedStatus[] {
  if (text === null || text === '') return LISTED_STATUSES;
  const names = text.split(',').flatMap((name) => name.trim().toLowerCase() || []);
  const unknown = names.filter((name) => !LISTED_STATUSES.some((known) => known === name));
  if (unknown.length > 0) {
    const [wrong, valid] = [unknown.join(', '), LISTED_STATUSES.join(', ')];
    throw textError(400, `Invalid status value(s): ${wrong}. Valid values: ${valid}`);
  }
  return LISTED_STATUSES.filter((known) => names.includes(known));
}

function outputTypeOf(text: string | null): MediaKind | null {
  if (text === null || text === '') return null;
  const known = MEDIA_KINDS.find((type) => type === text);
  if (known === undefined) throw textError(400, `Unknown output_type: ${text}`);
  return known;
}

function sorterFrom(
  query: URLSearchParams,
): (entries: readonly ListedJob[]) => readonly ListedJob[] {
  const name = (query.get('sort_by') ?? 'created_at').toLowerCase();
  const order = (query.get('sort_order') ?? 'desc').toLowerCase();
  const key = Object.hasOwn(SORT_KEYS, name) ? SORT_KEYS[name] : undefined;
  if (!key) throw textError(400, "sort_by must be 'created_at' or 'execution_duration'");
  if (order === 'asc') return (entries) => entries.toSorted((a, b) => key(a) - key(b));
  if (order !== 'desc') throw textError(400, "sort_order must be 'asc' or 'desc'");
  return (entries) => entries.toReversed().toSorted((a, b) => key(b) - key(a));
}

function durationMsOf(view: ListedJob): number {
  return view.startedAtMs === null || view.endedAtMs === null
    ? 0
    : view.endedAtMs - view.startedAtMs;
}
