import { type Json, isJsonObject, parseJson, stringifyJson } from '../../protocol/json.ts';
import { REMOVED, isSecretName } from './shown-text.ts';

/** The maximum depth of JSON that is a text inside JSON. */
const MAX_LEVELS = 6;

/**
 * Returns JSON without the members that name a credential, at any depth, also in texts that are
 * JSON themselves. Without such a member the text stays unchanged. Returns `undefined` when the text is not JSON.
 */
export function jsonWithoutCredentials(text: string, level = 0): string | undefined {
  let value: Json;
  try {
    value = parseJson(text);
  } catch {
    return undefined;
  }
  const found = { isAny: false };
  const shown = shownValue(value, found, level);
  // An escaped name is not visible in the text, nor is a member that a later one replaces.
  const isPlain = !found.isAny && !/\\u00/i.test(text);
  return isPlain ? text : stringifyJson(shown);
}

type Found = { isAny: boolean };

function shownValue(value: Json, found: Found, level: number): Json {
  if (typeof value === 'string') return shownString(value, found, level);
  if (Array.isArray(value)) return value.map((item: Json) => shownValue(item, found, level));
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, member]) => {
    if (!isSecretName(name) || isHarmless(member)) {
      return [name, shownValue(member, found, level)] as const;
    }
    found.isAny = true;
    return [name, REMOVED] as const;
  });
  return Object.fromEntries(members);
}

function shownString(text: string, found: Found, level: number): string {
  if (level >= MAX_LEVELS || !/^\s*[[{"]/.test(text)) return text;
  const shown = jsonWithoutCredentials(text, level + 1);
  if (shown === undefined || shown === text) return text;
  found.isAny = true;
  return shown;
}

/** Returns true for a value that says there is no credential. */
function isHarmless(value: Json): boolean {
  return value === null || value === '' || typeof value === 'boolean';
}
