import { JsonReader } from './json/reader.ts';
import {
  type Json,
  type JsonObject,
  LosslessNumber,
  entriesInOrder,
  isJsonObject,
  objectInOrder,
  writeJson,
} from './json/values.ts';
import { runSteps } from './steps.ts';

export { type JsonLimits, JsonReader } from './json/reader.ts';
export {
  type Json,
  type JsonObject,
  LosslessNumber,
  entriesInOrder,
  isGiven,
  isJsonObject,
  namesInOrder,
  objectInOrder,
  setMember,
} from './json/values.ts';

/** The deepest nesting that is accepted from a client. */
export const MAX_JSON_DEPTH = 200;

const LIMITS = { maxValues: Infinity, maxDepth: MAX_JSON_DEPTH, maxNodes: Infinity };

/** Parses JSON text; throws SyntaxError. Ignores a byte order mark, as the v1 server does. */
export function parseJson(text: string): Json {
  const reader = new JsonReader({ limits: LIMITS });
  const fault = reader.push(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
  if (fault !== undefined) throw new SyntaxError(fault);
  return runSteps(reader.end());
}

/** Returns an own member of a value; `undefined` when it has none of this name. */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export function parseJsonOrUndefined(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Returns the object that a text is in JSON; `undefined` when it is none. */
export function parseObject(text: string): JsonObject | undefined {
  const value = parseJsonOrUndefined(text);
  return isJsonObject(value) ? value : undefined;
}

/**
 * Returns why `parseJson` refused a text, without quotations: parsers quote the text, which may
 * hold a secret.
 */
export function jsonFault(error: unknown): string {
  const reason = error instanceof Error ? error.message : 'unreadable';
  // For `NaN` the parser's message is only a quotation.
  return reason.replace(/(, )?(\.{3})?".*/s, '').slice(0, 200) || 'Unexpected text';
}

/** Compact JSON text, every number and the order of members as they were read. */
export function stringifyJson(value: Json): string {
  return writeJson(value);
}

/** JSON text for people to read and edit, every number as it was read. */
export function prettyJson(value: Json): string {
  return `${writeJson(value, '  ')}\n`;
}

type Part = Json | undefined;

/**
 * True when two values have the same text, except for the order of members. `decide` is asked first
 * about each pair of parts; `undefined`: the texts decide.
 */
export function isSameJson(
  one: Part,
  other: Part,
  decide?: (one: Part, other: Part) => boolean | undefined,
): boolean {
  if (one === other) return true;
  const decided = decide?.(one, other);
  if (decided !== undefined) return decided;
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return false;
  if (isList(one) || isList(other)) {
    if (!isList(one) || !isList(other) || one.length !== other.length) return false;
    return one.every((item, i) => isSameJson(item, other[i], decide));
  }
  if (one instanceof LosslessNumber || other instanceof LosslessNumber) {
    return stringifyJson(one) === stringifyJson(other);
  }
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every(
    (name) => Object.hasOwn(other, name) && isSameJson(one[name], other[name], decide),
  );
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Returns a list or an object with its parts changed, and any other value as it is. */
export function mapParts(
  value: Json,
  change: (part: Json) => Json,
  rename = (name: string): string => name,
): Json {
  if (isList(value)) return value.map(change);
  if (!isJsonObject(value)) return value;
  return objectInOrder(
    entriesInOrder(value).map(([name, part]) => [rename(name), change(part)] as const),
  );
}
