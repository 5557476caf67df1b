import { createHmac } from 'node:crypto';
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
export class Catalog {
  readonly #byId: ReadonlyMap<string, ModelDef>;
  readonly #ids: readonly string[];
  readonly #cursors: Cursors;

  constructor(models: readonly ModelDef[], cursorSecret: Buffer) {
    this.#cursors = new Cursors(cursorSecret);
    this.#byId = new Map(models.map((model) => [modelId(model), model]));
    this.#ids = [...this.#byId.keys()].toSorted();
  }

  find(id: string): ModelDef | undefined {
    return this.#byId.get(id);
  }

  /** Returns one page of the models that the caller may see. */
  page(query: URLSearchParams, mayUse: MayUse): RouterReply {
    const parsedQuery = readQuery(query, this.#cursors);
    if ('bucket' in parsedQuery) return parsedQuery;
    const { after, limit } = parsedQuery;
    const rest = this.#ids.filter((id) => mayUse(id) && (!after || id > after));
    const shown = rest.slice(0, limit);
    const last = shown.at(-1);
    const more = rest.length > shown.length && last !== undefined;
    return replyJson({
      data: shown.map((id) => modelEntry(this.#byId.get(id) as ModelDef)),
      has_more: more,
      ...(more && { next_cursor: this.#cursors.write(last) }),
      limit,
    } satisfies ModelPage);
  }

  notFound(id: string, mayUse: MayUse): ReplyError {
    return replyError('model_not_found', notFoundDetail(id, this.#ids.filter(mayUse)));
  }
}

/** Returns a model as the catalog lists it. */
export function modelEntry(def: ModelDef): ModelEntry {
  const { provider, model, billing } = def;
  return { id: modelId(def), provider, model, billing };
}

/** Returns true when a text has the form of a model id. */
function isModelId(id: string): boolean {
  const [provider = '', model = '', ...rest] = id.split('/');
  if (rest.length > 0 || provider.length > MAX_PROVIDER_CHARS) return false;
  return (
    model.length <= MAX_MODEL_CHARS && [provider, model].every((one) => MODEL_SEGMENT.test(one))
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
  const wanted = Number(limit);
  return { after, limit: wanted <= 0 ? DEFAULT_LIMIT : Math.min(wanted, MAX_LIMIT) };
}

function notFoundDetail(id: string, known: readonly string[]): string {
  // An impossible id is not repeated in the message, which may be shown anywhere.
  if (!isModelId(id)) return 'This id names no model.';
  const near = known
    .map((other) => ({ other, steps: distance(id, other) }))
    .filter(({ other, steps }) => steps <= Math.max(id.length, other.length) * MAX_DISTANCE_SHARE)
    .toSorted((a, b) => a.steps - b.steps)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ other }) => other);
  const hint = near.length > 0 ? ` Did you mean ${near.join(', ')}?` : '';
  return `There is no model ${id}.${hint}`;
}

const SIGNATURE_BYTES = 16;

/**
 * Cursors name a position in the sort order, not an entry, so they outlive changes of the catalog.
 * They are signed: a changed or invented one would silently start elsewhere.
 */
class Cursors {
  readonly #secret: Buffer;

  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  write(id: string): string {
    const hmac = createHmac('sha256', this.#secret).update(`model cursor\0${id}`);
    const signature = hmac.digest().subarray(0, SIGNATURE_BYTES);
    return Buffer.concat([signature, Buffer.from(id)]).toString('base64url');
  }

  /** Returns the id before the next page; `undefined` when no server here wrote the cursor. */
  read(cursor: string): string | undefined {
    const id = Buffer.from(cursor, 'base64url').subarray(SIGNATURE_BYTES).toString();
    return this.write(id) === cursor ? id : undefined;
  }
}
