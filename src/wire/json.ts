import { LosslessNumber, isSafeNumber, stringify } from 'lossless-json';

/** JSON whose numbers survive to the digit: what a double cannot hold is kept as its source text. */
export type Json =
  | null
  | boolean
  | number
  | string
  | LosslessNumber
  | readonly Json[]
  | { readonly [key: string]: Json };

export type JsonObject = { readonly [key: string]: Json };

export { LosslessNumber } from 'lossless-json';

/** Deepest nesting accepted from a client; beyond it the text is refused, never recursed into. */
const MAX_DEPTH = 200;

/** Parses JSON text; throws SyntaxError. Tolerates a byte order mark, as the v1 server does. */
export function parseJson(text: string): Json {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const { unsafe, taken } = scan(body);
  if (unsafe.length === 0) return JSON.parse(body) as Json;
  // Workflows carry pictures as texts: a parser that is not native takes seconds for them.
  const { standIns, replaced } = withStandIns(body, unsafe, taken);
  return restored(JSON.parse(replaced), standIns) as Json;
}

type StandIns = ReadonlyMap<number, LosslessNumber>;

/** Puts what was meant in the place of each stand-in, in a value nobody else has seen. */
function restored(value: unknown, standIns: StandIns): unknown {
  // Not by a reviver: that takes five times as long as the parsing.
  if (typeof value === 'number') return standIns.get(Math.abs(value)) ?? value;
  if (typeof value !== 'object' || value === null) return value;
  const holder = value as { [key: string]: unknown };
  for (const key of Object.keys(holder)) {
    const member = holder[key];
    const isPlain = typeof member === 'string' || typeof member === 'boolean';
    if (!isPlain) holder[key] = restored(member, standIns);
  }
  return value;
}

/** Why `parseJson` refused a text; parsers like to quote what they stumbled over, which may be a secret. */
export function jsonFault(error: unknown): string {
  const reason = error instanceof Error ? error.message : 'unreadable';
  return reason.replace(/(, )?(\.{3})?".*$/s, '').slice(0, 200);
}

/** Compact JSON text, every number as it was read. */
export function stringifyJson(value: Json): string {
  const kept = countKept(value);
  // The native writer takes half the time; to it a kept number is an object of this one shape, which
  // cannot be part of a text: there its quotes would be escaped.
  const native = JSON.stringify(value) ?? 'null';
  if (kept === 0) return native;
  let found = 0;
  const text = native.replace(KEPT_AS_OBJECT, (_, digits: string) => {
    found++;
    return digits;
  });
  // More, when somebody's own object has that shape.
  return found === kept ? text : (stringify(value) ?? 'null');
}

const KEPT_AS_OBJECT = /\{"value":"([^"]*)","isLosslessNumber":true\}/g;

function countKept(value: Json | undefined): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (value instanceof LosslessNumber) return 1;
  const members = value as JsonObject;
  let count = 0;
  // Not over a list of its members: every prompt comes by.
  for (const name in members) {
    const item = members[name];
    if (typeof item === 'object') count += countKept(item);
  }
  return count;
}

/** JSON text for people to read and edit, every number as it was read. */
export function prettyJson(value: Json): string {
  return `${stringify(value, null, 2) ?? 'null'}\n`;
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof LosslessNumber)
  );
}

/** A number a double cannot hold, by its place in the text. */
type Unsafe = { readonly start: number; readonly end: number };

/** Numbers that stand for unsafe ones while a text is parsed: whole, exact, and rare in real life. */
const FIRST_STAND_IN = 2 ** 52;

const QUOTE = 0x22;

/**
 * The unsafe numbers of a text, and the values of the safe ones that could be taken for a stand-in.
 * Refuses deep nesting; what else is wrong is the parser's to find.
 */
function scan(text: string): { readonly unsafe: readonly Unsafe[]; readonly taken: Set<number> } {
  const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
  const unsafe: Unsafe[] = [];
  const taken = new Set<number>();
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) i = endOfString(text, i);
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === 0x5d || code === 0x7d) depth--;
    else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      number.lastIndex = i;
      const token = number.exec(text)?.[0] ?? '';
      const start = i;
      i += Math.max(0, token.length - 1);
      if (token.length < 16 && !/[eE]/.test(token)) continue;
      if (isSafeNumber(token)) taken.add(Math.abs(Number(token)));
      else unsafe.push({ start, end: i + 1 });
    }
  }
  return { unsafe, taken };
}

/** Position of the quote that ends the string begun at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    if (end < 0) return text.length;
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end;
  }
}

/** A part of a text is a view that keeps all of it in memory; this is a text of its own. */
function ownText(digits: string): string {
  return Buffer.from(digits, 'latin1').toString('latin1');
}

/** The text with a number of its own in place of each unsafe one, and what each stands for. */
function withStandIns(text: string, unsafe: readonly Unsafe[], taken: ReadonlySet<number>) {
  const standIns = new Map<number, LosslessNumber>();
  let standIn = FIRST_STAND_IN - 1;
  const pieces = unsafe.map(({ start, end }, i) => {
    do standIn++;
    while (taken.has(standIn));
    standIns.set(standIn, new LosslessNumber(ownText(text.slice(start, end))));
    // The sign stays where it is: without it `1-2` could become a number.
    const digits = text[start] === '-' ? start + 1 : start;
    return text.slice(unsafe[i - 1]?.end ?? 0, digits) + String(standIn);
  });
  return { standIns, replaced: pieces.join('') + text.slice(unsafe.at(-1)?.end ?? 0) };
}
