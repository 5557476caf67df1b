import { LosslessNumber as LibraryNumber, isSafeNumber, stringify } from 'lossless-json';

let losslessWritten = 0;

/** A number as its source text. */
export class LosslessNumber extends LibraryNumber {
  /** Called by `JSON.stringify`. Counts the numbers in a text while it is written. */
  toJSON(): this {
    losslessWritten++;
    return this;
  }
}

/** JSON with exact numbers: a number that does not fit a double is kept as its source text. */
export type Json =
  | null
  | boolean
  | number
  | string
  | LosslessNumber
  | readonly Json[]
  | { readonly [key: string]: Json };

export type JsonObject = { readonly [key: string]: Json };

/**
 * The deepest nesting that is accepted from a client. A deeper text is refused before any
 * recursion.
 */
const MAX_DEPTH = 200;

/** Parses JSON text; throws SyntaxError. Ignores a byte order mark, as the v1 server does. */
export function parseJson(text: string): Json {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const { replaced, placeholders } = withPlaceholders(body);
  const value: unknown = JSON.parse(replaced);
  return (placeholders.size === 0 ? value : restored(value, placeholders)) as Json;
}

type Placeholders = ReadonlyMap<number, LosslessNumber | number>;

/**
 * Replaces the placeholders with the exact numbers. The value is not shared yet, so it is changed
 * in place.
 */
function restored(value: unknown, placeholders: Placeholders): unknown {
  // A reviver would take five times as long as the parsing.
  if (typeof value === 'number') {
    const size = Math.abs(value);
    return size < FIRST_PLACEHOLDER ? value : (placeholders.get(size) ?? value);
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items: unknown[] = value;
    for (let i = 0; i < items.length; i++) items[i] = restored(items[i], placeholders);
    return items;
  }
  const holder = value as { [key: string]: unknown };
  for (const key of Object.keys(holder)) {
    const member = holder[key];
    const isPlain = typeof member === 'string' || typeof member === 'boolean';
    if (!isPlain) holder[key] = restored(member, placeholders);
  }
  return value;
}

/**
 * Returns why `parseJson` refused a text, without quotations: parsers quote the text, which may
 * hold a secret.
 */
export function jsonFault(error: unknown): string {
  const reason = error instanceof Error ? error.message : 'unreadable';
  // For `NaN` the parser's message is only a quotation.
  return reason.replace(/(, )?(\.{3})?".*$/s, '').slice(0, 200) || 'Unexpected text';
}

/** Compact JSON text, every number as it was read. */
export function stringifyJson(value: Json): string {
  losslessWritten = 0;
  // The native writer takes half the time. It writes a lossless number as an object of this one
  // shape, which cannot be part of a text, since there its quotes would be escaped.
  const native = JSON.stringify(value) ?? 'null';
  const losslessCount = losslessWritten;
  if (losslessCount === 0) return native;
  let found = 0;
  const text = native.replace(LOSSLESS_AS_OBJECT, (_, digits: string) => {
    found++;
    return digits;
  });
  // The counts differ when an object of the client has that shape.
  return found === losslessCount ? text : (stringify(value) ?? 'null');
}

const LOSSLESS_AS_OBJECT = /\{"value":"([^"]*)","isLosslessNumber":true\}/g;

/** JSON text for people to read and edit, every number as it was read. */
export function prettyJson(value: Json): string {
  return `${stringify(value, null, 2) ?? 'null'}\n`;
}

/** True when two values have the same text, except for the order of members. */
export function isSameJson(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || !one || !other) return false;
  if (isList(one) || isList(other)) {
    if (!isList(one) || !isList(other) || one.length !== other.length) return false;
    return one.every((item, i) => isSameJson(item, other[i]));
  }
  if (one instanceof LosslessNumber || other instanceof LosslessNumber) {
    return stringifyJson(one) === stringifyJson(other);
  }
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && isSameJson(one[name], other[name]));
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

/** Sets a member as JSON means it, also for the name `__proto__`. */
export function setMember<T>(holder: { [name: string]: T }, name: string, value: T): void {
  if (name !== '__proto__') holder[name] = value;
  else {
    const member = { value, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(holder, name, member);
  }
}

/** Returns a list or an object with its parts changed, and any other value as it is. */
export function mapParts(
  value: Json,
  change: (part: Json) => Json,
  rename = (name: string): string => name,
): Json {
  if (isList(value)) return value.map(change);
  if (!isJsonObject(value)) return value;
  const members = Object.entries(value).map(([name, part]) => [rename(name), change(part)]);
  return Object.fromEntries(members) as JsonObject;
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof LosslessNumber)
  );
}

/**
 * The first of the numbers that stand for others while a text is parsed. They are whole and exact.
 */
const FIRST_PLACEHOLDER = 2 ** 52;
/** Shorter numbers without an exponent are exact, and lower than all placeholders. */
const LONG_NUMBER = 16;

const QUOTE = 0x22;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/**
 * Puts a placeholder in place of each number that does not fit a double, and of each that equals a
 * placeholder. Workflows carry pictures as texts, for which a parser in JavaScript takes seconds.
 * Refuses deep nesting; the parser finds other faults.
 */
function withPlaceholders(text: string): {
  readonly placeholders: Placeholders;
  readonly replaced: string;
} {
  const placeholders = new Map<number, LosslessNumber | number>();
  const placeholderFor = placeholderAllocator(placeholders);
  let replaced = '';
  let from = 0;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) throw new SyntaxError(`Nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      const end = endOfNumber(text, i);
      const placeholder =
        end - i >= LONG_NUMBER || hasExponent(text, i, end)
          ? placeholderFor(text, i, end)
          : undefined;
      if (placeholder !== undefined) {
        // The sign stays in its place.
        replaced += text.slice(from, code === 0x2d ? i + 1 : i) + placeholder;
        from = end;
      }
      i = end - 1;
    }
  }
  return { placeholders, replaced: from === 0 ? text : replaced + text.slice(from) };
}

/**
 * Returns a function that gives the placeholder of a number, if it needs one. A text may repeat a
 * number very often.
 */
function placeholderAllocator(placeholders: Map<number, LosslessNumber | number>) {
  const known = new Map<string, string | undefined>();
  let last = '';
  let lastPlaceholder: string | undefined;
  return (text: string, start: number, end: number): string | undefined => {
    if (end - start === last.length && text.startsWith(last, start)) return lastPlaceholder;
    last = detachedText(text.slice(start, end));
    if (!known.has(last)) {
      const exactNumber = exactNumberOf(last);
      const placeholder = FIRST_PLACEHOLDER + placeholders.size;
      if (exactNumber !== undefined) placeholders.set(placeholder, exactNumber);
      known.set(last, exactNumber === undefined ? undefined : String(placeholder));
    }
    lastPlaceholder = known.get(last);
    return lastPlaceholder;
  };
}

/** Returns the exact number of a token, if it must be restored after parsing. */
function exactNumberOf(token: string): LosslessNumber | number | undefined {
  if (!NUMBER.test(token)) throw new SyntaxError('Unexpected character in a number');
  const value = Number(token);
  const size = Math.abs(value);
  if (!isPlainlySafe(token, size) && !isSafeNumber(token)) return new LosslessNumber(token);
  return size < FIRST_PLACEHOLDER ? undefined : value;
}

/** True for a number that a double surely keeps: up to 15 digits, and not among the smallest. */
function isPlainlySafe(token: string, size: number): boolean {
  if (size > Number.MAX_SAFE_INTEGER || size < 1e-300) return false;
  const exponent = token.search(/[eE]/);
  return (exponent < 0 ? token.length : exponent) <= 15;
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end++) {
    const code = text.charCodeAt(end);
    const isOfNumber = (code >= 0x2d && code <= 0x39 && code !== 0x2f) || code === 0x2b;
    if (!isOfNumber && !isExponent(code)) break;
  }
  return end;
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (isExponent(text.charCodeAt(i))) return true;
  return false;
}

function isExponent(code: number): boolean {
  return code === 0x65 || code === 0x45;
}

/** Returns the position of the quote that ends the string begun at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    if (end < 0) return text.length;
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end;
  }
}

/** Returns a copy: a slice is a view that keeps the whole text in memory. */
function detachedText(digits: string): string {
  return Buffer.from(digits, 'latin1').toString('latin1');
}
