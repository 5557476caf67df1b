import { type Json, isJsonObject } from '../protocol/json.ts';

/** A refusal repeats a value several times, and a client may send one of 100 MB. */
const MAX_CHARS = 10_000;
const SHORTENED_MARK = '… (shortened)';

/** Returns a client's text as a refusal repeats it. */
export function shownText(text: string): string {
  return shorten(text, MAX_CHARS);
}

/** Returns a client's value as a refusal repeats it: a long one is cut. */
export function shownValue(value: Json): Json {
  let left = MAX_CHARS;
  const show = (item: Json): Json => {
    left -= 1;
    if (typeof item === 'string') return showText(item);
    if (Array.isArray(item)) return mapWhileLeft(item as readonly Json[], show);
    if (!isJsonObject(item)) return item;
    const showMember = (name: string) => [showText(name), show(item[name] ?? null)] as const;
    return Object.fromEntries(mapWhileLeft(Object.keys(item), showMember));
  };
  const showText = (text: string): string => {
    const shown = shorten(text, Math.max(0, left));
    left -= shown.length;
    return shown;
  };
  const mapWhileLeft = <T, U>(items: readonly T[], map: (item: T) => U): U[] => {
    const mapped: U[] = [];
    for (const item of items) {
      if (left <= 0) break;
      mapped.push(map(item));
    }
    return mapped;
  };
  return show(value);
}

function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars) + SHORTENED_MARK;
}
