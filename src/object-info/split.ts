import { setImmediate as nextTurn } from 'node:timers/promises';

/** One member of a JSON object, as places in its bytes. */
export type Member = { readonly start: number; readonly colon: number; readonly end: number };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPENERS = new Set([OPEN, 0x5b]);
const CLOSERS = new Set([CLOSE, 0x5d]);

const SLICE_MS = 5;

/**
 * Hands out the members of a JSON object one after the other, unparsed, and lets others have a
 * turn in between: a text of 10 MB must not be one long stop. Throws where it is no object; what
 * is wrong inside a member is its reader's to find.
 */
export async function* membersOf(bytes: Buffer): AsyncGenerator<Member> {
  let at = blank(bytes, bytes.subarray(0, 3).equals(BOM) ? 3 : 0);
  if (bytes[at] !== OPEN) throw new SyntaxError('no JSON object');
  at = blank(bytes, at + 1);
  let sinceMs = performance.now();
  for (let first = true; bytes[at] !== CLOSE; first = false) {
    if (!first) at = blank(bytes, expect(bytes, at, COMMA));
    const member = memberAt(bytes, at);
    yield member;
    at = blank(bytes, member.end);
    if (performance.now() - sinceMs < SLICE_MS) continue;
    await nextTurn();
    sinceMs = performance.now();
  }
  if (blank(bytes, at + 1) !== bytes.length) throw new SyntaxError('text after the JSON object');
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

function memberAt(bytes: Buffer, start: number): Member {
  const colon = blank(bytes, endOfString(bytes, expect(bytes, start, QUOTE) - 1));
  const end = endOfValue(bytes, blank(bytes, expect(bytes, colon, COLON)));
  return { start, colon, end };
}

/** Where a value ends: behind its last bracket, or before what follows it. */
function endOfValue(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length;) {
    const byte = bytes[at] as number;
    if (depth === 0 && (byte === COMMA || CLOSERS.has(byte))) return at;
    if (byte === QUOTE) at = endOfString(bytes, at);
    else {
      if (OPENERS.has(byte)) depth++;
      else if (CLOSERS.has(byte) && --depth === 0) return at + 1;
      at++;
    }
  }
  throw new SyntaxError('cut short');
}

/** Behind the closing quote of the string begun at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === BACKSLASH) at++;
    else if (bytes[at] === QUOTE) return at + 1;
  }
  throw new SyntaxError('cut short');
}

function blank(bytes: Buffer, start: number): number {
  let at = start;
  while (isBlank(bytes[at])) at++;
  return at;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function expect(bytes: Buffer, at: number, byte: number): number {
  if (bytes[at] !== byte) throw new SyntaxError('no JSON object');
  return at + 1;
}
