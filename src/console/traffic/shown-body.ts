import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decodedPart } from '../../protocol/request-target.ts';
import { REMOVED, withoutCredentials } from '../../protocol/url-credentials.ts';
import type { TrafficBody } from '../api-types.ts';
import type { RecordedEntry } from '../traffic-store.ts';
import { type CapturedBody, MAX_BODY_BYTES, bytesOf, isCut } from './captured-body.ts';
import { type ShowText, isSecretName } from './shown-text.ts';
import {
  type Json,
  isJsonObject,
  parseJsonOrUndefined,
  stringifyJson,
} from '../../protocol/json.ts';

/**
 * Returns a body of an entry without credentials, as the inspector shows it; `null` when there is no body.
 */
export function shownBody(
  recorded: RecordedEntry,
  side: 'request' | 'response',
  showText: ShowText,
): TrafficBody | null {
  const [body, contentType = ''] =
    side === 'request'
      ? [recorded.request, recorded.requestType]
      : [recorded.response, recorded.responseType];
  const { entry, responseHeaders = [], contentStart = 0 } = recorded;
  const { target = '' } = entry;
  if (body === undefined || body.totalBytes === 0) return null;
  const [, encoding] =
    (side === 'response' && responseHeaders.find(([name]) => name === 'content-encoding')) || [];
  const facts = { content_type: contentType, bytes: body.totalBytes, is_cut: isCut(body) };
  if (namesSecret(target)) return { ...facts, text: REMOVED, note: null };
  if (contentType.startsWith('multipart/')) {
    return { ...facts, text: multipartText(body, contentType, showText), note: null };
  }
  if (!isText(contentType)) return { ...facts, text: null, note: null };
  const bytes = encoding === undefined ? bytesOf(body) : unpacked(body, encoding);
  if (bytes === undefined) return { ...facts, text: null, note: `compressed with ${encoding}` };
  const text = withoutTail(bytes.toString('utf8', contentStart), body);
  return { ...facts, text: shownText(text, contentType, showText), note: null };
}

function shownText(text: string, contentType: string, showText: ShowText): string {
  const isForm = contentType.includes('urlencoded') || (contentType === '' && FORM.test(text));
  if (isForm) return showText(withoutCredentials(`?${text}`).slice(1));
  return showText(jsonWithoutCredentials(text) ?? text);
}

/** Matches a form such as `a=1&b=2`. */
const FORM = /^[\w%.+-]+=/;
const MAX_TAIL_CHARS = 8192;

/** Removes the end of a text that was cut: it may be half of a key, which is not recognized. */
function withoutTail(text: string, body: CapturedBody): string {
  if (!isCut(body)) return text;
  const lastEnd = Math.max(text.lastIndexOf('"'), text.lastIndexOf('\n'), text.lastIndexOf('&'));
  return text.slice(0, Math.max(lastEnd, text.length - MAX_TAIL_CHARS));
}

/** Returns true for a setting such as `/settings/Comfy.ApiKey`, whose body is the value alone. */
function namesSecret(target: string): boolean {
  const [path = ''] = target.split('?', 1);
  const name = decodedPart(path.split('/').at(-1));
  return name === undefined || isSecretName(name);
}

function unpacked(body: CapturedBody, encoding: string): Buffer | undefined {
  if (isCut(body)) return undefined;
  const limits = { maxOutputLength: 64 * MAX_BODY_BYTES };
  try {
    const bytes = bytesOf(body);
    const text =
      encoding === 'br' ? brotliDecompressSync(bytes, limits) : gunzipSync(bytes, limits);
    return text.subarray(0, 8 * MAX_BODY_BYTES);
  } catch {
    return undefined;
  }
}

/** Returns true for text. A body without a type counts as text, since v1 clients send JSON without one. */
function isText(contentType: string): boolean {
  return contentType === '' || /json|^text\/|xml|urlencoded|event-stream/.test(contentType);
}

/**
 * Returns the picture in an entry; `undefined` when only its beginning was recorded, or its bytes contain a key.
 * Pictures carry the graph that made them.
 */
export function pictureIn(recorded: RecordedEntry, showText: ShowText): Buffer | undefined {
  const { contentStart = 0 } = recorded;
  const body = recorded.response ?? recorded.request;
  if (recorded.entry.picture === undefined || body === undefined || isCut(body)) return undefined;
  const bytes = bytesOf(body);
  const text = bytes.toString('latin1');
  return showText(text) === text ? bytes.subarray(contentStart) : undefined;
}

/**
 * Returns a form as readable text: each part with its headers, and its text without credentials or
 * its number of bytes.
 */
function multipartText(body: CapturedBody, contentType: string, showText: ShowText): string {
  const boundary = /boundary="?([^";]+)"?/i.exec(contentType)?.[1];
  if (boundary === undefined) return `(${body.totalBytes} bytes)`;
  const parts = bytesOf(body).toString('latin1').split(`--${boundary}`).slice(1);
  const shown = parts
    .filter((part) => !part.startsWith('--'))
    .map((part, at) => partText(part, { showText, isCut: isCut(body) && at === parts.length - 1 }));
  return shown.join('\n\n');
}

const MAX_TEXT_CHARS = 2000;

type PartOptions = {
  readonly showText: ShowText;
  /** True when only the beginning was recorded. Half of a key is not recognized. */
  readonly isCut: boolean;
};

function partText(part: string, options: PartOptions): string {
  const end = part.indexOf('\r\n\r\n');
  if (end < 0) return '(cut off)';
  const head = utf8(part.slice(0, end)).trim();
  const body = part.slice(end + 4).replace(/\r\n$/, '');
  return `${options.showText(head)}\n\n${bodyText(head, body, options)}`;
}

function bodyText(head: string, body: string, { showText, isCut }: PartOptions): string {
  if (/filename\*?=/i.test(head)) return isCut ? '(a file, cut off)' : `(${body.length} bytes)`;
  if (isCut) return '(cut off)';
  const name = /\bname\*?="?([^";\r\n]*)/i.exec(head)?.[1] ?? '';
  // Such as `name*=utf-8''api%5Fkey`.
  const plainName = decodedPart(name.replace(/^[\w-]*'[\w-]*'/, '')) ?? name;
  if (isSecretName(plainName)) return REMOVED;
  const text = utf8(body);
  return showText(jsonWithoutCredentials(text) ?? text).slice(0, MAX_TEXT_CHARS);
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}

/** The maximum depth of JSON that is a text inside JSON. */
const MAX_LEVELS = 6;

/**
 * Returns JSON without the members that name a credential, at any depth, also in texts that are
 * JSON themselves. Without such a member the text stays unchanged. Returns `undefined` when the text is not JSON.
 * @internal
 */
export function jsonWithoutCredentials(text: string, level = 0): string | undefined {
  const value = parseJsonOrUndefined(text);
  if (value === undefined) return undefined;
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
