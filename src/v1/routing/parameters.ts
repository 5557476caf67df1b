import { V1Error, plainError, requirePrintable } from '../../dialects/errors.ts';
import { type Json, type JsonObject, isJsonObject } from '../../protocol/json.ts';

/** The most ids in one call; no client shows a longer queue. */
const MAX_IDS = 10_000;

/** Ids in a body's list member, refused when it is no list of strings. */
export function readIdList(value: Json | undefined, name: string): readonly string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_IDS) {
    throw new V1Error(
      400,
      plainError('invalid_request', `"${name}" must be a list of at most ${MAX_IDS} ids.`),
    );
  }
  return value.map((id) => requirePrintable(String(id), name));
}

/** The body as a JSON object; anything else is a 400. */
export function requireObject(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  throw new V1Error(400, plainError('invalid_request', 'The body must be a JSON object.'));
}

/** An integer of the query; the original answers 500 to anything else. */
export function integerParam(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (/^\s*[+-]?\d{1,15}\s*$/.test(text)) return Number(text);
  throw new V1Error(400, plainError('invalid_request', `"${name}" must be an integer.`));
}
