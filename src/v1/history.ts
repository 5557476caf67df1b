import type { BodyReader } from '../http/json-body.ts';
import type { Ledger, PromptOutline } from '../ledger/ledger.ts';
import { historyV2Detail, historyV2Item } from '../translate/history.ts';
import { type ExceptionWord, shownEntry } from '../translate/stored-history-entry.ts';
import { stringifyJson } from '../protocol/json.ts';
import { isTruthyInPython } from '../protocol/python-text.ts';

import { readJson } from './routing/body.ts';
import { rulesFor } from '../dialects/dialect.ts';
import { V1Error, plainError, sendEmpty, sendJson } from '../dialects/errors.ts';
import type { MarkFetched } from '../prompts/mark-fetched.ts';
import { readEntryBatches, historyChunks, paginate } from './history-page.ts';
import { sendJsonPieces } from '../http/json-stream.ts';
import { findEndedPrompt, parseEntry } from './ended-prompts.ts';
import { integerParam, readIdList, requireObject } from './routing/parameters.ts';
import type { V1Request, V1Route } from './routes.ts';

type HistoryServices = {
  readonly ledger: Ledger;
  readonly bodies: BodyReader;
  readonly markFetched: MarkFetched;
};

/** `/history` and the hosted API's `/api/history_v2`. */
export function historyRoutes(services: HistoryServices): readonly V1Route[] {
  return [
    { method: 'GET', path: '/history', handle: (request) => listHistory(services, request) },
    { method: 'GET', path: '/history/:id', handle: (request) => getHistory(services, request) },
    { method: 'POST', path: '/history', handle: (request) => editHistory(services, request) },
    {
      method: 'GET',
      path: '/api/history_v2',
      handle: (request) => listHistoryV2(services, request),
    },
    {
      method: 'GET',
      path: '/api/history_v2/:id',
      handle: (request) => getHistoryV2(services, request),
    },
  ];
}

async function listHistory(
  { ledger, markFetched }: HistoryServices,
  request: V1Request,
): Promise<void> {
  const { ctx, caller, query } = request;
  const page = {
    maxItems: integerParam(query, 'max_items'),
    offset: integerParam(query, 'offset'),
  };
  const shown = paginate(await ledger.prompts.outlines(caller.user), page);
  markFetched(request, 'listed', idsOf(shown));
  await sendJsonPieces(ctx, historyChunks(ledger, shown, rulesFor(ctx).exceptionType));
}

/** An unknown id, and one that has not ended, are `{}`: a poller takes the key for the end. */
async function getHistory(
  { ledger, markFetched }: HistoryServices,
  request: V1Request,
): Promise<void> {
  const { ctx, caller, params } = request;
  const { id = '' } = params;
  const row = await findEndedPrompt(ledger, caller.user, id);
  if (row) markFetched(request, 'by id', [row.promptId]);
  const stored = row?.entryJson ?? null;
  const text = stored === null ? null : shownEntry(stored, rulesFor(ctx).exceptionType);
  const pieces = text === null ? ['{}'] : [`{${JSON.stringify(id)}:`, text, '}'];
  await sendJsonPieces(ctx, pieces.values());
}

async function editHistory(
  { ledger, bodies }: HistoryServices,
  { ctx, caller }: V1Request,
): Promise<void> {
  const body = requireObject(await readJson(ctx, bodies));
  if (isTruthyInPython(body.clear)) await ledger.prompts.clearHistory(caller.user);
  const ids = readIdList(body.delete, 'delete');
  if (ids.length > 0) {
    const rows = await Promise.all(ids.map((id) => findEndedPrompt(ledger, caller.user, id)));
    const knownIds = rows.flatMap((row) => (row ? [row.promptId] : []));
    await ledger.prompts.deleteHistory(caller.user, [...new Set([...ids, ...knownIds])]);
  }
  sendEmpty(ctx);
}

function idsOf(outlines: readonly PromptOutline[]): readonly string[] {
  return outlines.map(({ promptId }) => promptId);
}

/** Newest first. */
async function listHistoryV2(
  { ledger, markFetched }: HistoryServices,
  request: V1Request,
): Promise<void> {
  const { ctx, caller, query } = request;
  const all = (await ledger.prompts.outlines(caller.user)).toReversed();
  const offset = Math.max(0, integerParam(query, 'offset') ?? 0);
  const count = integerParam(query, 'max_items') ?? all.length;
  const shown = all.slice(offset, offset + Math.max(0, count));
  markFetched(request, 'listed', idsOf(shown));
  await sendJsonPieces(ctx, historyV2Chunks(ledger, shown, rulesFor(ctx).exceptionType));
}

async function* historyV2Chunks(
  ledger: Ledger,
  shown: readonly PromptOutline[],
  exceptionWord: ExceptionWord,
): AsyncGenerator<string, undefined> {
  let separator = '{"history":[';
  for await (const entries of readEntryBatches(ledger, shown)) {
    for (const [outline, entryJson] of entries) {
      yield (
        separator + stringifyJson(historyV2Item(outline, parseEntry({ entryJson }, exceptionWord)))
      );
      separator = ',';
    }
  }
  yield separator === ',' ? ']}' : `${separator}]}`;
}

async function getHistoryV2(
  { ledger, markFetched }: HistoryServices,
  request: V1Request,
): Promise<void> {
  const { ctx, caller, params } = request;
  const { id = '' } = params;
  const row = await findEndedPrompt(ledger, caller.user, id);
  if (!row) throw new V1Error(404, plainError('not_found', `No finished prompt has the id ${id}.`));
  markFetched(request, 'by id', [row.promptId]);
  sendJson(ctx, { [id]: historyV2Detail(parseEntry(row, rulesFor(ctx).exceptionType)) });
}
