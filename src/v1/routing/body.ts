import type Koa from 'koa';
import type { BodyReader, ReadOptions } from '../../http/json-body.ts';
import type { BodyRefusal } from '../../http/unpacked-body.ts';
import { type Json, type JsonObject, isJsonObject } from '../../protocol/json.ts';
import {
  type Fault,
  V1Error,
  faultOf,
  invalidRequest,
  plainError,
  requirePrintable,
  retryAfterHeader,
} from '../../dialects/errors.ts';

/** Reads a body as JSON, whatever its content type: v1 clients send any label. */
export async function readJson(
  ctx: Koa.Context,
  bodyReader: BodyReader,
  options: ReadOptions = {},
): Promise<Json> {
  const result = await bodyReader.read(ctx, options);
  if (result.ok) return result.value;
  throw bodyError(result, 'invalid_json');
}

/** Reads a body as JSON; returns `undefined` for a text that is not JSON. */
export async function readJsonOrUndefined(
  ctx: Koa.Context,
  bodyReader: BodyReader,
): Promise<Json | undefined> {
  const result = await bodyReader.read(ctx);
  if (result.ok) return result.value;
  if (result.isSyntax) return undefined;
  throw bodyError(result, 'invalid_json');
}

/** Returns the error of a body that was refused. `malformed`: the code of a 400. */
export function bodyError(refusal: BodyRefusal, malformed: string): V1Error {
  const { status, message } = refusal;
  // v1 sends a 413 as plain text.
  if (status === 413) return bodyErrorText(refusal);
  const code = status === 400 ? malformed : faultOf(status).code;
  return errorOf(refusal, plainError(code, message));
}

/** Returns the error of a refused body as plain text. */
export function bodyErrorText(refusal: BodyRefusal): V1Error {
  return errorOf(refusal, refusal.message);
}

function errorOf(
  { status, isSyntax, retryAfterSeconds }: BodyRefusal,
  fault: Fault | string,
): V1Error {
  const retryHeaders = retryAfterHeader(retryAfterSeconds);
  // Only after bad JSON is the rest of the body read; all other refusals close the connection.
  const headers = isSyntax ? retryHeaders : { ...retryHeaders, Connection: 'close' };
  return new V1Error(status, fault, { headers });
}

/** The maximum number of ids in one call. No client shows a longer queue. */
const MAX_IDS = 10_000;

/**
 * Returns the different ids in a list of the body. As in v1, a list or an object in it names no
 * prompt.
 */
export function readIdList(value: Json | undefined, name: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_IDS) {
    throw invalidRequest(`"${name}" must be a list of at most ${MAX_IDS} ids.`);
  }
  const ids = (value as readonly Json[]).flatMap((id) => (isContainer(id) ? [] : String(id)));
  return [...new Set(ids.map((id) => requirePrintable(id, name)))];
}

function isContainer(value: Json): value is JsonObject | readonly Json[] {
  return Array.isArray(value) || isJsonObject(value);
}

/**
 * Returns the ids in a member that v1 iterates over: the characters of a text, the keys of an
 * object.
 */
export function readNamedIds(value: Json | undefined, name: string): readonly string[] {
  if (typeof value === 'string') return readIdList(Array.from(value), name);
  return readIdList(isJsonObject(value) ? Object.keys(value) : value, name);
}

/** Returns the body as a JSON object; any other value is refused with 400. */
export function requireObject(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw invalidRequest('The body must be a JSON object.');
}

/** The form of an integer that Python's `int()` reads. */
const PYTHON_INTEGER = /^\s*[+-]?\d(_?\d){0,99}\s*$/;

/** Reads an integer of the query. The original answers 500 to any other value. */
export function integerParam(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  const value = readInteger(text);
  if (text !== null && value === undefined) throw invalidRequest(`"${name}" must be an integer.`);
  return value;
}

/** Reads an integer as Python does; `undefined` for any other text. */
export function readInteger(text: string | null): number | undefined {
  if (text === null || !PYTHON_INTEGER.test(text)) return undefined;
  // Clients in typed languages send their largest number to mean "all".
  const most = Number.MAX_SAFE_INTEGER;
  return Math.max(-most, Math.min(most, Number(text.replaceAll('_', ''))));
}
