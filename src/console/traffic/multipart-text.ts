import { type CapturedBody, bytesOf, isCut } from './captured-body.ts';
import { jsonWithoutCredentials } from './shown-json.ts';
import { REMOVED, type ShowText, isSecretName } from './shown-text.ts';

/**
 * Returns a form as readable text: each part with its headers, and its text without credentials or
 * its number of bytes.
 */
export function multipartText(body: CapturedBody, contentType: string, showText: ShowText): string {
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
  if (isSecretName(decoded(name))) return REMOVED;
  const text = utf8(body);
  return showText(jsonWithoutCredentials(text) ?? text).slice(0, MAX_TEXT_CHARS);
}

/** Decodes a name such as `name*=utf-8''api%5Fkey`. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replace(/^[\w-]*'[\w-]*'/, ''));
  } catch {
    return name;
  }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8');
}
