import { createHmac, timingSafeEqual } from 'node:crypto';
import { distance } from 'fastest-levenshtein';
import {
  MAX_MODEL_CHARS,
  MAX_PROVIDER_CHARS,
  MODEL_SEGMENT,
  type ModelEntry,
  type ModelPage,
} from '../protocol/router.ts';
import { type ModelDef, modelId } from './model-def.ts';
import { type RouterReply, type ReplyError, replyError, replyJson } from './reply.ts';

/** Returns true when a caller may see and run a model. */
type MayUse = (id: string) => boolean;

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;
const MAX_SUGGESTIONS = 3;
/** The maximum share of its characters in which a wrong id may differ from the suggested one. */
const MAX_DISTANCE_SHARE = 0.6;

/** The models that can run here, in the order of their ids. */
export function createCatalog(models: readonly ModelDef[], cursors: Cursors) {
  const byId = new Map(models.map((model) => [modelId(model), model]));
  const ids = [...byId.keys()].toSorted();
  return {
    find: (id: string): ModelDef | undefined => byId.get(id),
    /** Returns one page of the models that the caller may see. */
    page(query: URLSearchParams, mayUse: MayUse): RouterReply {
      const parsedQuery = readQuery(query, cursors);
      if ('bucket' in parsedQuery) return parsedQuery;
      const rest = ids.filter((id) => mayUse(id) && (!parsedQuery.after || id > parsedQuery.after));
      const shown = rest.slice(0, parsedQuery.limit);
      const last = shown.at(-1);
      const more = rest.length > shown.length && last !== undefined;
      return replyJson({
        data: shown.map((id) => modelEntry(byId.get(id) as ModelDef)),
        has_more: more,
        ...(more && { next_cursor: cursors.write(last) }),
        limit: parsedQuery.limit,
      } satisfies ModelPage);
    },
    notFound: (id: string, mayUse: MayUse): ReplyError =>
      replyError('model_not_found', notFoundDetail(id, ids.filter(mayUse))),
  };
}

/** Returns a model as the catalogue lists it. */
export function modelEntry(def: ModelDef): ModelEntry {
  const { provider, model, billing } = def;
  return { id: modelId(def), provider, model, billing };
}

/** Returns true when these segments have the form of a model id. */
function isModelId(provider: string, model: string): boolean {
  return (
    provider.length <= MAX_PROVIDER_CHARS &&
    model.length <= MAX_MODEL_CHARS &&
    MODEL_SEGMENT.test(provider) &&
    MODEL_SEGMENT.test(model)
  );
}

type PageQuery = { readonly after: string | undefined; readonly limit: number };

/** Reads the query. An unknown cursor is refused, since it must not silently restart a listing. */
function readQuery(query: URLSearchParams, cursors: Cursors): PageQuery | ReplyError {
  const [given, ...others] = query.getAll('cursor');
  const after = given === undefined ? undefined : cursors.read(given);
  if (others.length > 0 || (given !== undefined && after === undefined)) {
    return replyError('invalid_input', 'This cursor is not one of this catalog.');
  }
  const [limit = String(DEFAULT_LIMIT), ...more] = query.getAll('limit');
  if (more.length > 0 || !/^[+-]?\d+$/.test(limit)) {
    return replyError('invalid_input', 'limit must be a whole number.');
  }
  const parsedQuery = Number(limit);
  return { after, limit: parsedQuery <= 0 ? DEFAULT_LIMIT : Math.min(parsedQuery, MAX_LIMIT) };
}

function notFoundDetail(id: string, known: readonly string[]): string {
  const [provider = '', model = '', ...rest] = id.split('/');
  // An impossible id is not repeated in the message, which may be shown anywhere.
  if (rest.length > 0 || !isModelId(provider, model)) return 'This id names no model.';
  const near = known
    .map((other) => ({ other, steps: distance(id, other) }))
    .filter(({ other, steps }) => steps <= Math.max(id.length, other.length) * MAX_DISTANCE_SHARE)
    .toSorted((a, b) => a.steps - b.steps)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ other }) => other);
  const hint = near.length > 0 ? ` Did you mean ${near.join(', ')}?` : '';
  return `There is no model ${id}.${hint}`;
}

/** Page cursors: the last id of a page, signed, so that only issued cursors are accepted. */
interface Cursors {
  readonly write: (id: string) => string;
  /**
   * Returns the id before the next page; `undefined` when this server did not issue the cursor.
   */
  read(cursor: string): string | undefined;
}

const SIGNATURE_BYTES = 16;
const MAX_CHARS = 512;

/**
 * Creates cursors that name a position in the sort order, not an entry, so they outlive changes of
 * the catalogue.
 */
export function createCursors(secret: Buffer): Cursors {
  const sign = (id: string): Buffer =>
    createHmac('sha256', secret)
      .update(`model cursor\0${id}`)
      .digest()
      .subarray(0, SIGNATURE_BYTES);
  const write = (id: string): string =>
    `${Buffer.from(id).toString('base64url')}.${sign(id).toString('base64url')}`;
  return {
    write,
    read(cursor) {
      if (cursor.length > MAX_CHARS) return undefined;
      const id = Buffer.from(cursor.split('.', 1)[0] ?? '', 'base64url').toString();
      const expected = Buffer.from(write(id));
      const given = Buffer.from(cursor);
      return given.length === expected.length && timingSafeEqual(given, expected) ? id : undefined;
    },
  };
}
