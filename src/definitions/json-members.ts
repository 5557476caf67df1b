import { setImmediate as nextTurn } from 'node:timers/promises';

/** One member of a JSON object, as byte offsets. */
export type Member = { readonly start: number; readonly colon: number; readonly end: number };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const OPENERS = new Set([OPEN, 0x5b]);
const CLOSERS = new Set([CLOSE, 0x5d]);

const MAX_BLOCKING_MS = 5;

/**
 * Yields the members of a JSON object one after the other, unparsed, and lets other work run in
 * between: a text of 10 MB must not block the event loop. Throws when it is not an object. Faults
 * inside a member are left to its parser.
 */
export async function* membersOf(bytes: Buffer): AsyncGenerator<Member> {
  let position = skipBlanks(bytes, bytes.subarray(0, 3).equals(BOM) ? 3 : 0);
  if (bytes[position] !== OPEN) throw new SyntaxError('no JSON object');
  position = skipBlanks(bytes, position + 1);
  let sinceMs = performance.now();
  for (let first = true; bytes[position] !== CLOSE; first = false) {
    if (!first) position = skipBlanks(bytes, expectByte(bytes, position, COMMA));
    const member = memberAt(bytes, position);
    yield member;
    position = skipBlanks(bytes, member.end);
    if (performance.now() - sinceMs < MAX_BLOCKING_MS) continue;
    await nextTurn();
    sinceMs = performance.now();
  }
  if (skipBlanks(bytes, position + 1) !== bytes.length)
    throw new SyntaxError('text after the JSON object');
}

const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

function memberAt(bytes: Buffer, start: number): Member {
  const colon = skipBlanks(bytes, endOfString(bytes, expectByte(bytes, start, QUOTE) - 1));
  const end = endOfValue(bytes, skipBlanks(bytes, expectByte(bytes, colon, COLON)));
  return { start, colon, end };
}

/** The end of a value: behind its last bracket, or before the next character. */
function endOfValue(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let position = start; position < bytes.length;) {
    const byte = bytes[position] as number;
    if (depth === 0 && (byte === COMMA || CLOSERS.has(byte))) return position;
    if (byte === QUOTE) position = endOfString(bytes, position);
    else {
      if (OPENERS.has(byte)) depth++;
      else if (CLOSERS.has(byte) && --depth === 0) return position + 1;
      position++;
    }
  }
  throw new SyntaxError('cut short');
}

/** Behind the closing quote of the string begun at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  for (let position = start + 1; position < bytes.length; position++) {
    if (bytes[position] === BACKSLASH) position++;
    else if (bytes[position] === QUOTE) return position + 1;
  }
  throw new SyntaxError('cut short');
}

function skipBlanks(bytes: Buffer, start: number): number {
  let position = start;
  while (isBlank(bytes[position])) position++;
  return position;
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function expectByte(bytes: Buffer, position: number, byte: number): number {
  if (bytes[position] !== byte) throw new SyntaxError('no JSON object');
  return position + 1;
}
