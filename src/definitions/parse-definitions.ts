import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Definitions } from './definitions.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  parseObject,
  stringifyJson,
} from '../protocol/json.ts';
import { toPythonText } from '../protocol/python-json-text.ts';
import { withoutUploadFolders } from '../protocol/upload-folders.ts';
import type { ClassInfo, ObjectInfo } from '../protocol/v1.ts';

/** A text of 10 MB must not block the event loop, so other work runs after so many characters. */
const CHARS_PER_TURN = 64 * 1024;
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"?|[[\]{},]/g;

/**
 * Yields the texts of the members of a JSON object. Throws SyntaxError when it is not one. Faults
 * inside a member are left to its parser.
 */
function* membersOf(text: string): Generator<string> {
  let [depth, start] = [0, 0];
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const isRoot = depth === 0;
    if (isRoot && (start > 0 || token !== '{' || text.slice(0, index).trim() !== '')) break;
    if (token === '{' || token === '[') depth++;
    if (token === '}' || token === ']') depth--;
    if (isRoot) start = index + 1;
    else if (depth === 0 || (depth === 1 && token === ',')) {
      yield text.slice(start, index).trim();
      start = index + 1;
    }
  }
  if (depth > 0 || start === 0 || text.slice(start).trim() !== '')
    throw new SyntaxError('it is no JSON object');
}

/** The parsed text, or why it cannot be used. */
type ParsedDefinitions =
  | { readonly ok: true; readonly definitions: Definitions; readonly ignoredClasses: number }
  | { readonly ok: false; readonly reason: string };

/**
 * Reads definitions of whatever origin. A class that is no definition is left out, as v1 leaves
 * out a node that cannot describe itself; the others keep their text to the digit.
 */
export async function readDefinitions(bytes: Buffer): Promise<ParsedDefinitions> {
  if (!isUtf8(bytes)) return { ok: false, reason: 'it is not UTF-8' };
  const members = new Map<string, Buffer>();
  const pause = yieldEvery(CHARS_PER_TURN);
  let ignoredClasses = 0;
  let describedClasses = 0;
  try {
    for (const text of membersOf(bytes.toString())) {
      const [name, raw] = Object.entries(parseObject(`{${text}}`) ?? {})[0] ?? [];
      if (name === undefined || !isJsonObject(raw)) ignoredClasses++;
      else {
        members.set(name, clientText(text, name, raw));
        if (isJsonObject(raw['input']) || Array.isArray(raw['output'])) describedClasses++;
      }
      await pause(text.length);
    }
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  }
  if (describedClasses === 0) return { ok: false, reason: 'it describes no node' };
  return { ok: true, ignoredClasses, definitions: definitionsOf(members, lazyObjectInfo(members)) };
}

/**
 * A definition as clients are shown it: with a name to display, as a 1.4.13 front end's search throws
 * on `null` (row `display-name`), and without the folders in which other users' uploads lie.
 */
function clientText(text: string, name: string, raw: JsonObject): Buffer {
  const listsFolders = text.includes('holdover-');
  const isNameless = raw['display_name'] === null;
  if (!listsFolders && !isNameless) return Buffer.from(text);
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
  const members = Object.entries(info).map(([name, one]) => [name, memberText(name, one)] as const);
  return definitionsOf(new Map(members), info);
}

function definitionsOf(members: ReadonlyMap<string, Buffer>, info: ObjectInfo): Definitions {
  const hash = createHash('sha256');
  for (const member of members.values()) hash.update(member).update(',');
  return { version: hash.digest('base64url').slice(0, 27), members, info };
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
