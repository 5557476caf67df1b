import { isUtf8 } from 'node:buffer';
import { type Hash, createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Definitions } from './definitions.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  stringifyJson,
} from '../protocol/json.ts';
import { toPythonText } from '../protocol/python-json-text.ts';
import { withoutUploadFolders } from '../protocol/upload-folders.ts';
import type { ClassInfo, ObjectInfo } from '../protocol/v1.ts';

/** One member of a JSON object, as byte offsets. */
type Member = { readonly start: number; readonly colon: number; readonly end: number };

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
 * @internal
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

/** The parsed text, or why it cannot be used. */
export type ParsedDefinitions =
  | { readonly ok: true; readonly definitions: Definitions; readonly ignoredClasses: number }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads definitions of whatever origin. A class that is no definition is left out, as v1 leaves
 * out a node that cannot describe itself; the others keep their text to the digit.
 */
export async function readDefinitions(bytes: Buffer): Promise<ParsedDefinitions> {
  if (!isUtf8(bytes)) return { ok: false, reason: 'it is not UTF-8' };
  const members = new Map<string, Buffer>();
  const hash = createHash('sha256');
  let ignoredClasses = 0;
  let describedClasses = 0;
  try {
    for await (const member of membersOf(bytes)) {
      const { name, raw } = readClass(bytes, member);
      if (name === undefined || raw === undefined) ignoredClasses++;
      else {
        const text = clientText(bytes.subarray(member.start, member.end), name, raw);
        members.set(name, text);
        hash.update(text).update(',');
        if (isJsonObject(raw['input']) || Array.isArray(raw['output'])) describedClasses++;
      }
    }
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
  if (describedClasses === 0) return { ok: false, reason: 'it describes no node' };
  return {
    ok: true,
    ignoredClasses,
    definitions: { version: versionOf(hash), members, info: lazyObjectInfo(members) },
  };
}

/**
 * A definition as clients are shown it: with a name to display, as a 1.4.13 front end's search throws
 * on `null` (row `display-name`), and without the folders in which other users' uploads lie.
 */
function clientText(text: Buffer, name: string, raw: JsonObject): Buffer {
  const listsFolders = text.includes('holdover-');
  const isNameless = raw['display_name'] === null;
  if (!listsFolders && !isNameless) return text;
  return memberText(name, {
    ...raw,
    ...(listsFolders &&
      raw['input'] !== undefined && { input: withoutUploadFolders(raw['input']) }),
    ...(isNameless && { display_name: name }),
  });
}

/** A member of `/object_info` that has no text of its source. */
export function memberText(name: string, info: Json): Buffer {
  return Buffer.from(toPythonText(`${JSON.stringify(name)}:${stringifyJson(info)}`));
}

/** Definitions that are there already. */
export function toDefinitions(info: ObjectInfo): Definitions {
  const entries = Object.entries(info).map(([name, one]) => {
    return [name, memberText(name, one)] as const;
  });
  const hash = createHash('sha256');
  for (const [, member] of entries) hash.update(member).update(',');
  return { version: versionOf(hash), members: new Map(entries), info };
}

function versionOf(hash: Hash): string {
  return hash.digest('base64url').slice(0, 27);
}

function readClass(bytes: Buffer, member: Member): { name?: string; raw?: JsonObject } {
  try {
    const name: unknown = JSON.parse(bytes.toString('utf8', member.start, member.colon));
    const raw = parseJson(bytes.toString('utf8', member.colon + 1, member.end));
    return { name: name as string, ...(isJsonObject(raw) && { raw }) };
  } catch {
    return {};
  }
}

/** A graph names a few of thousands of classes; only those are parsed and held. */
function lazyObjectInfo(members: ReadonlyMap<string, Buffer>): ObjectInfo {
  const info = Object.create(null) as { [name: string]: ClassInfo };
  for (const [name, member] of members) {
    let known: ClassInfo | undefined;
    Object.defineProperty(info, name, {
      enumerable: true,
      get: () => (known ??= classInfo(parseJson(`{${member.toString()}}`), name)),
    });
  }
  return info;
}

/**
 * The members that other code reads have their shape, whatever the text says; the rest is
 * unchanged.
 */
function classInfo(whole: Json, name: string): ClassInfo {
  const raw = (whole as JsonObject)[name] as JsonObject;
  const groups = isJsonObject(raw['input']) ? Object.entries(raw['input']) : [];
  return {
    ...raw,
    input: Object.fromEntries(groups.filter(([, group]) => isJsonObject(group))),
    output_node: raw['output_node'] === true,
  } as unknown as ClassInfo;
}
