import { InvalidSetting } from './invalid-setting.ts';

/** Single times and amounts that tests set otherwise. */
export function parseJsonObject(flag: string, text: string): { readonly [name: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as { [name: string]: unknown };
  } catch {
    // Refused below.
  }
  throw new InvalidSetting(`option '${flag}' must be a JSON object`);
}

export const MEBIBYTE: number = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Times are recorded in whole milliseconds. */
export function daysInMs(days: number): number {
  return Math.round(days * DAY_MS);
}

/** An environment variable holds several values in one text. */
export function splitList(texts: readonly string[] = []): readonly string[] {
  return texts.flatMap((text) => text.split(/[\s,;]+/)).filter((text) => text !== '');
}

/** Reads an address; `undefined` when it is none. */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

const HOST_FORM = /^(\[[\da-f:.]+\]|[^:/?#@\s[\]*]+)(?::(\d{1,5}))?$/i;

/** Reads `HOST` and `HOST:PORT`; `undefined`: it is neither. */
export function parseHost(
  text: string,
): { readonly hostname: string; readonly port: string | undefined } | undefined {
  const [, host = '', port] = HOST_FORM.exec(text) ?? [];
  const url = host === '' ? undefined : parseUrl(`http://${host}`);
  return url && Number(port ?? 1) <= 65_535 ? { hostname: url.hostname, port } : undefined;
}

/** A text in place of an address, as it may be repeated: without what may be a login. */
export function addressWithoutLogin(text: string): string {
  return text.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, '$1').replace(/\?.*/s, '?…');
}
