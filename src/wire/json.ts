import { LosslessNumber, isSafeNumber, parse, stringify } from 'lossless-json';

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

/** A number token long enough, or written oddly enough, that a double might not hold it. */
const MAY_LOSE_DIGITS = /[0-9][0-9.]{15,}|[0-9][eE][+-]?[0-9]/;

/** Deepest nesting accepted from a client; beyond it the text is refused, never recursed into. */
const MAX_DEPTH = 200;

/** Parses JSON text; throws SyntaxError. Tolerates a byte order mark, as the v1 server does. */
export function parseJson(text: string): Json {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  refuseDeepNesting(body);
  if (!MAY_LOSE_DIGITS.test(body)) return JSON.parse(body) as Json;
  return parse(body, null, { parseNumber: toNumber, onDuplicateKey: lastOneWins }) as Json;
}

/** Why `parseJson` refused a text; parsers like to quote what they stumbled over, which may be a secret. */
export function jsonFault(error: unknown): string {
  const reason = error instanceof Error ? error.message : 'unreadable';
  return reason.replace(/(, )?(\.{3})?".*$/s, '').slice(0, 200);
}

/** Compact JSON text, every number as it was read. */
export function stringifyJson(value: Json): string {
  return stringify(value) ?? 'null';
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof LosslessNumber)
  );
}

function toNumber(token: string): number | LosslessNumber {
  return isSafeNumber(token) ? Number(token) : new LosslessNumber(token);
}

function lastOneWins({ newValue }: { newValue: unknown }): unknown {
  return newValue;
}

function refuseDeepNesting(text: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH} levels`);
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
}
