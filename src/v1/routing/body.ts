import type Koa from 'koa';
import type { BodyReader } from '../../http/json-body.ts';
import type { BodyRefusal } from '../../http/unpacked-body.ts';
import { type Json, type JsonObject, isJsonObject } from '../../protocol/json.ts';
import {
  type Fault,
  V1Error,
  faultOf,
  plainError,
  requirePrintable,
  retryAfterHeader,
} from '../../dialects/errors.ts';

/** Reads a body as JSON whatever its content type says; v1 clients label it as anything. */
export async function readJson(
  ctx: Koa.Context,
  bodyReader: BodyReader,
  graphMember?: string,
): Promise<Json> {
  const result = await bodyReader.read(ctx, graphMember === undefined ? {} : { graphMember });
  if (result.ok) return result.value;
  throw bodyError(result, 'invalid_json');
}

/** The same, but a text that is no JSON is `undefined`. */
export async function readJsonOrUndefined(
  ctx: Koa.Context,
  bodyReader: BodyReader,
): Promise<Json | undefined> {
  const result = await bodyReader.read(ctx);
  if (result.ok) return result.value;
  if (result.isSyntax) return undefined;
  throw bodyError(result, 'invalid_json');
}

/** The error of a body that was not taken; `malformed`: the code of a 400. */
export function bodyError(refusal: BodyRefusal, malformed: string): V1Error {
  const { status, message } = refusal;
  // v1 says a 413 in plain text.
  if (status === 413) return bodyErrorText(refusal);
  const code = status === 400 ? malformed : faultOf(status).code;
  return errorOf(refusal, plainError(code, message));
}

/** The same as a plain text. */
export function bodyErrorText(refusal: BodyRefusal): V1Error {
  return errorOf(refusal, refusal.message);
}

function errorOf(
  { status, isSyntax, retryAfterSeconds }: BodyRefusal,
  fault: Fault | string,
): V1Error {
  const retryHeaders = retryAfterHeader(retryAfterSeconds);
  // Only after bad JSON the rest of the body is read; all other refusals close the connection.
  const headers = isSyntax ? retryHeaders : { ...retryHeaders, Connection: 'close' };
  return new V1Error(status, fault, { headers });
}

/** The most ids in one call; no client shows a longer queue. */
const MAX_IDS = 10_000;

/** The different ids in a body's list member; as in v1, a list or an object in it is the id of nothing. */
export function readIdList(value: Json | undefined, name: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_IDS) {
    throw new V1Error(
      400,
      plainError('invalid_request', `"${name}" must be a list of at most ${MAX_IDS} ids.`),
    );
  }
  const ids = (value as readonly Json[]).flatMap((id) => (isContainer(id) ? [] : String(id)));
  return [...new Set(ids.map((id) => requirePrintable(id, name)))];
}

/** The ids in a member that v1 iterates over: a text is its characters there, an object its keys. */
export function readNamedIds(value: Json | undefined, name: string): readonly string[] {
  if (typeof value === 'string') return readIdList(Array.from(value), name);
  return readIdList(isJsonObject(value) ? Object.keys(value) : value, name);
}

function isContainer(value: Json): value is JsonObject | readonly Json[] {
  return Array.isArray(value) || isJsonObject(value);
}

/** The body as a JSON object; anything else is a 400. */
export function requireObject(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw new V1Error(400, plainError('invalid_request', 'The body must be a JSON object.'));
}

/** As Python's `int()` reads one. */
const PYTHON_INTEGER = /^\s*[+-]?\d(_?\d){0,99}\s*$/;

function clamped(value: number): number {
  const most = Number.MAX_SAFE_INTEGER;
  return Math.max(-most, Math.min(most, value));
}

/** An integer of the query; the original answers 500 to anything else. */
export function integerParam(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  // Clients in typed languages send the largest number they know for all there is.
  if (PYTHON_INTEGER.test(text)) return clamped(Number(text.replaceAll('_', '')));
  throw new V1Error(400, plainError('invalid_request', `"${name}" must be an integer.`));
}
