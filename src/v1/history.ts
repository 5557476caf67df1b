import type { BodyReader } from '../http/json-body.ts';
import type { Ledger, PromptOutline, PromptRow } from '../ledger/ledger.ts';
import { historyV2Detail, historyV2Item } from '../translate/history.ts';
import { type ExceptionWord, shownEntry } from '../translate/shown-entry.ts';
import { parseJson, stringifyJson } from '../wire/json.ts';
import { pythonTruth } from '../wire/python-text.ts';
import type { HistoryEntry } from '../wire/v1.ts';
import { readJson } from './body.ts';
import { rulesFor } from './dialect.ts';
import { V1Error, plainError, sendEmpty, sendJson } from './errors.ts';
import type { MarkFetched } from './fetched.ts';
import { entriesOf, historyBody, pageOf } from './history-page.ts';
import { sendJsonPieces } from './streamed-json.ts';
import { idList, objectBody } from './queue.ts';
import type { V1Request, V1Route } from './routes.ts';

type Deps = {
  readonly ledger: Ledger;
  readonly bodies: BodyReader;
  readonly markFetched: MarkFetched;
};

/** `/history` and the hosted API's `/api/history_v2`. */
export function historyRoutes(deps: Deps): readonly V1Route[] {
  return [
    { method: 'GET', path: '/history', handle: (request) => list(deps, request) },
    { method: 'GET', path: '/history/:id', handle: (request) => one(deps, request) },
    { method: 'POST', path: '/history', handle: (request) => edit(deps, request) },
    { method: 'GET', path: '/api/history_v2', handle: (request) => listV2(deps, request) },
    { method: 'GET', path: '/api/history_v2/:id', handle: (request) => oneV2(deps, request) },
  ];
}

/** The entry of a done row; what is stored there came from us. */
export function entryOf(
  row: Pick<PromptRow, 'entryJson'>,
  word: ExceptionWord = 'own',
): HistoryEntry {
  return parseJson(shownEntry(row.entryJson ?? 'null', word)) as unknown as HistoryEntry;
}

/** A done prompt under its v1 id or its v2 id. */
export async function findDone(
  { prompts }: Ledger,
  user: string,
  id: string,
): Promise<PromptRow | undefined> {
  const row = (await prompts.find(user, id)) ?? (await prompts.findByJob(user, id));
  return row?.state === 'done' ? row : undefined;
}

/** An integer of the query; the original answers 500 to anything else. */
export function integerOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (/^\s*[+-]?\d{1,15}\s*$/.test(text)) return Number(text);
  throw new V1Error(400, plainError('invalid_request', `"${name}" must be an integer.`));
}

async function list({ ledger, markFetched }: Deps, request: V1Request): Promise<void> {
  const { ctx, caller, query } = request;
  const page = { maxItems: integerOf(query, 'max_items'), offset: integerOf(query, 'offset') };
  const shown = pageOf(await ledger.prompts.outlines(caller.user), page);
  markFetched(request, 'listed', idsOf(shown));
  await sendJsonPieces(ctx, historyBody(ledger, shown, rulesFor(ctx).exceptionType));
}

/** An unknown id, and one that has not ended, are `{}`: a poller takes the key for the end. */
async function one({ ledger, markFetched }: Deps, request: V1Request): Promise<void> {
  const { ctx, caller, params } = request;
  const { id = '' } = params;
  const row = await findDone(ledger, caller.user, id);
  if (row) markFetched(request, 'by id', [row.promptId]);
  const stored = row?.entryJson ?? null;
  const text = stored === null ? null : shownEntry(stored, rulesFor(ctx).exceptionType);
  const pieces = text === null ? ['{}'] : [`{${JSON.stringify(id)}:`, text, '}'];
  await sendJsonPieces(ctx, pieces.values());
}

async function edit({ ledger, bodies }: Deps, { ctx, caller }: V1Request): Promise<void> {
  const body = objectBody(await readJson(ctx, bodies));
  if (pythonTruth(body.clear)) await ledger.prompts.clearHistory(caller.user);
  const ids = idList(body.delete, 'delete');
  if (ids.length > 0) {
    const rows = await Promise.all(ids.map((id) => findDone(ledger, caller.user, id)));
    const named = rows.flatMap((row) => (row ? [row.promptId] : []));
    await ledger.prompts.deleteHistory(caller.user, [...new Set([...ids, ...named])]);
  }
  sendEmpty(ctx);
}

function idsOf(outlines: readonly PromptOutline[]): readonly string[] {
  return outlines.map(({ promptId }) => promptId);
}

/** Newest first. */
async function listV2({ ledger, markFetched }: Deps, request: V1Request): Promise<void> {
  const { ctx, caller, query } = request;
  const all = (await ledger.prompts.outlines(caller.user)).toReversed();
  const offset = Math.max(0, integerOf(query, 'offset') ?? 0);
  const count = integerOf(query, 'max_items') ?? all.length;
  const shown = all.slice(offset, offset + Math.max(0, count));
  markFetched(request, 'listed', idsOf(shown));
  await sendJsonPieces(ctx, historyV2Pieces(ledger, shown, rulesFor(ctx).exceptionType));
}

async function* historyV2Pieces(
  ledger: Ledger,
  shown: readonly PromptOutline[],
  word: ExceptionWord,
): AsyncGenerator<string, undefined> {
  let before = '{"history":[';
  for await (const entries of entriesOf(ledger, shown)) {
    for (const [outline, entryJson] of entries) {
      yield before + stringifyJson(historyV2Item(outline, entryOf({ entryJson }, word)));
      before = ',';
    }
  }
  yield before === ',' ? ']}' : `${before}]}`;
}

async function oneV2({ ledger, markFetched }: Deps, request: V1Request): Promise<void> {
  const { ctx, caller, params } = request;
  const { id = '' } = params;
  const row = await findDone(ledger, caller.user, id);
  if (!row) throw new V1Error(404, plainError('not_found', `No finished prompt has the id ${id}.`));
  markFetched(request, 'by id', [row.promptId]);
  sendJson(ctx, { [id]: historyV2Detail(entryOf(row, rulesFor(ctx).exceptionType)) });
}
