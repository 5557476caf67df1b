import { isUtf8 } from 'node:buffer';
import { type Hash, createHash } from 'node:crypto';
import type { Definitions } from './definitions.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  stringifyJson,
} from '../protocol/json.ts';
import { withoutUploadFolders } from '../protocol/upload-folders.ts';
import type { ClassInfo, ObjectInfo } from '../protocol/v1.ts';
import { type Member, membersOf } from './json-members.ts';

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

function memberText(name: string, info: Json): Buffer {
  return Buffer.from(`${JSON.stringify(name)}:${stringifyJson(info)}`);
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
