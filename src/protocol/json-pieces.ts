import { type Json, isJsonObject, stringifyJson } from './json.ts';

/** So many members are not worth a piece each. */
const FEW = 8;

/**
 * The text of `stringifyJson`, in pieces: one for each member of the outermost `levels` objects and
 * lists, so that a large value can be written with pauses in between. A few members are one piece.
 */
export function* jsonPieces(value: Json, levels: number): Generator<string> {
  const isHolder = Array.isArray(value) || isJsonObject(value);
  if (levels === 0 || !isHolder) return yield stringifyJson(value);
  const isList = Array.isArray(value);
  if (levels === 1 && Object.keys(value).length <= FEW) return yield stringifyJson(value);
  let before = isList ? '[' : '{';
  for (const [name, member] of Object.entries(value) as [string, Json | undefined][]) {
    if (member === undefined && !isList) continue;
    yield isList ? before : `${before}${JSON.stringify(name)}:`;
    yield* jsonPieces(member ?? null, levels - 1);
    before = ',';
  }
  if (before !== ',') yield before;
  yield isList ? ']' : '}';
}
