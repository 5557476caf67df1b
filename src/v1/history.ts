import type { BodyReader } from '../http/json-body.ts';
import type { Ledger, PromptOutline, PromptRow } from '../ledger/ledger.ts';
import { historyV2Detail, historyV2Item } from '../translate/history.ts';
import { type ResultForm, parseEntry, shownEntry } from '../translate/stored-history-entry.ts';
import { stringifyJson } from '../protocol/json.ts';
import { isTruthyInPython } from '../protocol/python-text.ts';
import { readJson, integerParam, readNamedIds, requireObject } from './routing/body.ts';
import { rulesFor } from '../dialects/dialect.ts';
import { V1Error, plainError, sendEmpty } from '../dialects/errors.ts';
import type { MarkFetched } from '../prompts/mark-fetched.ts';
import { sendJsonPieces } from '../http/json-stream.ts';
import { findEndedPrompt, latestRuns } from './job-view.ts';
import { type V1Request, routesFor } from './routes.ts';

type HistoryServices = {
  readonly ledger: Ledger;
  readonly bodies: BodyReader;
  readonly markFetched: MarkFetched;
};

/** `/history` and the hosted API's `/api/history_v2`. */
export const historyRoutes = routesFor<HistoryServices>({
  async 'GET /history'({ ledger, markFetched }, request) {
    const { ctx, caller, query } = request;
    const page = {
      maxItems: integerParam(query, 'max_items'),
      offset: integerParam(query, 'offset'),
    };
    const shown = paginate(latestRuns(await ledger.prompts.outlines(caller.user)), page);
    markFetched(request, 'listed', idsOf(shown));
    await sendJsonPieces(ctx, historyChunks(ledger, shown, rulesFor(ctx).results));
  },
  /**
   * Answers `{}` for an unknown id, and for a prompt that has not ended: a client that polls takes
   * the key for the end.
   */
  async 'GET /history/:id'(services, request) {
    const { ctx, params } = request;
    const { id = '' } = params;
    const stored = (await fetchEnded(services, request))?.entryJson ?? null;
    const text = stored === null ? null : shownEntry(stored, rulesFor(ctx).results);
    const pieces = text === null ? ['{}'] : [`{${JSON.stringify(id)}:`, text, '}'];
    await sendJsonPieces(ctx, pieces.values());
  },
  async 'POST /history'({ ledger, bodies }, { ctx, caller }) {
    const body = requireObject(await readJson(ctx, bodies));
    if (isTruthyInPython(body.clear)) await ledger.prompts.clearHistory(caller.user);
    const ids = readNamedIds(body.delete, 'delete');
    if (ids.length > 0) {
      const rows = await Promise.all(ids.map((id) => findEndedPrompt(ledger, caller.user, id)));
      const knownIds = rows.flatMap((row) => (row ? [row.promptId] : []));
      await ledger.prompts.deleteHistory(caller.user, [...new Set([...ids, ...knownIds])]);
    }
    sendEmpty(ctx);
  },
  /** Lists the entries, newest first. */
  async 'GET /api/history_v2'({ ledger, markFetched }, request) {
    const { ctx, caller, query } = request;
    const all = latestRuns(await ledger.prompts.outlines(caller.user)).toReversed();
    const offset = Math.max(0, integerParam(query, 'offset') ?? 0);
    const count = integerParam(query, 'max_items') ?? all.length;
    const shown = all.slice(offset, offset + Math.max(0, count));
    markFetched(request, 'listed', idsOf(shown));
    await sendJsonPieces(ctx, historyV2Chunks(ledger, shown, rulesFor(ctx).results));
  },
  async 'GET /api/history_v2/:id'(services, request) {
    const { ctx, params } = request;
    const { id = '' } = params;
    const row = await fetchEnded(services, request);
    if (!row)
      throw new V1Error(404, plainError('not_found', `No finished prompt has the id ${id}.`));
    const detail = historyV2Detail(parseEntry(row, rulesFor(ctx).results));
    await sendJsonPieces(ctx, [stringifyJson({ [id]: detail })].values());
  },
});

function idsOf(outlines: readonly PromptOutline[]): readonly string[] {
  return outlines.map(({ promptId }) => promptId);
}

function historyV2Chunks(
  ledger: Ledger,
  shown: readonly PromptOutline[],
  form: ResultForm,
): AsyncGenerator<string, undefined> {
  const batches = shownBatches(ledger, shown, (outline, entryJson) =>
    stringifyJson(historyV2Item(outline, parseEntry({ entryJson }, form))),
  );
  return between('{"history":[', batches, ']}');
}

/** The ended prompt that a client asks for by its id. */
async function fetchEnded(
  { ledger, markFetched }: HistoryServices,
  request: V1Request,
): Promise<PromptRow | undefined> {
  const row = await findEndedPrompt(ledger, request.caller.user, request.params['id'] ?? '');
  if (row) markFetched(request, 'by id', [row.promptId]);
  return row;
}

type HistoryQuery = {
  readonly maxItems: number | undefined;
  readonly offset: number | undefined;
};

/**
 * The entries that are read at a time: as many as fit in this many bytes, or a single larger one.
 */
const BATCH_BYTES = 256 * 1024;

/**
 * Returns the entries that a client asks for, oldest first.
 * @internal
 */
export function paginate<T>(all: readonly T[], { maxItems, offset }: HistoryQuery): readonly T[] {
  if (maxItems === undefined) return all.slice(Math.max(0, offset ?? 0));
  // v1 takes the newest when only a maximum is given; a negative offset counts as none.
  if (offset === undefined || offset < 0) return maxItems > 0 ? all.slice(-maxItems) : [];
  // It looks at the maximum after it has taken an entry.
  return all.slice(offset, offset + Math.max(1, maxItems));
}

/**
 * Yields `GET /history` in pieces.
 * @internal
 */
export function historyChunks(
  ledger: Ledger,
  page: readonly PromptOutline[],
  form: ResultForm = 'own',
): AsyncGenerator<string, undefined> {
  const batches = shownBatches(
    ledger,
    page,
    ({ promptId }, text) => `${JSON.stringify(promptId)}:${shownEntry(text, form)}`,
  );
  return between('{', batches, '}');
}

async function* between(
  open: string,
  batches: AsyncIterable<string>,
  close: string,
): AsyncGenerator<string, undefined> {
  let before = open;
  for await (const batch of batches) {
    yield before;
    yield batch;
    before = ',';
  }
  yield before === open ? open + close : close;
}

/**
 * Reads the entries in batches. Entries that were deleted meanwhile are left out. While a client reads
 * a batch, only its text is in memory, not the entries that it was made of.
 */
async function* shownBatches(
  { prompts }: Ledger,
  outlines: readonly PromptOutline[],
  show: (outline: PromptOutline, entryJson: string) => string,
): AsyncGenerator<string> {
  const textOf = async (batch: readonly PromptOutline[]): Promise<string> => {
    const texts = await prompts.entries(batch.map(({ key }) => key));
    const shown = batch.flatMap((outline, index) => {
      const text = texts[index] ?? null;
      return text === null ? [] : show(outline, text);
    });
    return shown.join(',');
  };
  for (const batch of batchesOf(outlines)) {
    const text = await textOf(batch);
    if (text !== '') yield text;
  }
}

function* batchesOf(outlines: readonly PromptOutline[]): Generator<readonly PromptOutline[]> {
  let batch: PromptOutline[] = [];
  let batchBytes = 0;
  for (const outline of outlines) {
    const { storedBytes } = outline;
    if (batch.length > 0 && batchBytes + storedBytes > BATCH_BYTES) {
      yield batch;
      [batch, batchBytes] = [[], 0];
    }
    batch.push(outline);
    batchBytes += storedBytes;
  }
  if (batch.length > 0) yield batch;
}
