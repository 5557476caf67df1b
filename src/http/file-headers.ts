import type { IncomingHttpHeaders } from 'node:http';
import { extname } from 'node:path';
import { encodeExtended } from 'content-disposition';
import type Koa from 'koa';
import { lookup } from 'mime-types';

/** The head of a request. */
export type RequestHead = {
  readonly headers: IncomingHttpHeaders;
  readonly url?: string | undefined;
};

const UNKNOWN_TYPE = 'application/octet-stream';

/** The types for which v1's table differs from the library's. */
const V1_TYPES: { readonly [extension: string]: string } = {
  '.flac': 'audio/flac',
  '.wav': 'audio/x-wav',
};

/**
 * The types that a browser may run: v1's list of five, those of newer servers, and further ones.
 */
const ACTIVE_TYPES =
  /^(text\/(html|html-sandboxed|javascript|css|xml|x-component)|application\/(javascript|ecmascript|xml|pdf|x-shockwave-flash)|message\/rfc822|multipart\/.*|.*\+xml)$/;

const SVG = 'image/svg+xml';

/** Returns the type that v1 derives from a file's extension, if there is one. */
export function contentTypeOf(filename: string): string | undefined {
  const extension = extname(filename).toLowerCase();
  if (extension === '') return undefined;
  return V1_TYPES[extension] ?? (lookup(extension) || undefined);
}

/**
 * Returns the headers that another server may send with a file in place of this one, and no others.
 * `undefined` when they would not keep a browser from running the file.
 */
export function headersElsewhere(
  file: { readonly filename: string; readonly contentType: string },
  fetchDest: string,
): { readonly contentType: string; readonly disposition: string } | undefined {
  const { 'Content-Type': contentType = UNKNOWN_TYPE, 'Content-Disposition': disposition = '' } =
    fileHeaders(file, fetchDest);
  // An SVG is safe only in the sandbox that this server puts it in.
  if (contentType === SVG) return undefined;
  const [prefix = ''] = disposition.split('filename=', 1);
  return { contentType, disposition: `${prefix}${asciiDispositionOf(file.filename)}` };
}

/**
 * Returns the headers for the content of a file. Content that a browser could run is sent as an
 * attachment, in a sandbox. An SVG is a picture only inside an `<img>`.
 */
export function fileHeaders(
  file: { readonly filename: string; readonly contentType: string },
  fetchDest: string,
): { readonly [header: string]: string } {
  const type =
    contentTypeOf(file.filename) ?? file.contentType.toLowerCase().split(';', 1)[0] ?? '';
  if (!ACTIVE_TYPES.test(type))
    return {
      'Content-Type': type || UNKNOWN_TYPE,
      'Content-Disposition': dispositionOf(file.filename),
    };
  const isImageElement = type === SVG && fetchDest === 'image';
  return {
    'Content-Type': isImageElement ? SVG : UNKNOWN_TYPE,
    'Content-Disposition': dispositionOf(file.filename, isImageElement ? 'inline' : 'attachment'),
    'Content-Security-Policy': "sandbox; default-src 'none'; style-src 'unsafe-inline'",
    'Cache-Control': 'no-store',
    Vary: 'Sec-Fetch-Dest',
  };
}

/**
 * Returns the `Content-Disposition` of an answer. Inline it is v1's `filename="…"` alone, in
 * unencoded UTF-8: old clients take everything behind the `=`. Node writes each character of a
 * header as one byte.
 */
export function dispositionOf(filename: string, type: 'inline' | 'attachment' = 'inline'): string {
  const parameter = `filename=${quotedOf(filename.replaceAll(/\p{Cc}/gu, '?'))}`;
  return Buffer.from(type === 'inline' ? parameter : `attachment; ${parameter}`).toString('latin1');
}

/**
 * Returns the header in ASCII, for a server that takes only that. Another name is added encoded.
 */
function asciiDispositionOf(filename: string): string {
  const printableName = filename.replaceAll(/\p{Cs}/gu, '\ufffd');
  const ascii = printableName.replaceAll(/[^\x20-\x7e]/gu, '?');
  const quoted = `filename=${quotedOf(ascii)}`;
  return ascii === printableName ? quoted : `${quoted}; filename*=${encodeExtended(printableName)}`;
}

function quotedOf(text: string): string {
  return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
}

/** These tell one version of a file from another. */
type Validators = { readonly etag: string; readonly modifiedAtMs?: number };

/**
 * True when the client's copy is current (RFC 9110, 13.2.2): tags are compared weakly, and a date
 * counts only without them. Not Koa's `fresh`: that one obeys the `Cache-Control: no-cache` which
 * `fetch` adds whenever it is given a condition.
 */
export function isCopyCurrent(
  { headers }: RequestHead,
  { etag, modifiedAtMs = Number.NaN }: Validators,
): boolean {
  const tags = headers['if-none-match'];
  if (tags === undefined) {
    const modifiedAtS = Math.floor(modifiedAtMs / 1000);
    return modifiedAtS * 1000 <= Date.parse(headers['if-modified-since'] ?? '');
  }
  const strongTag = etag.replace(/^W\//, '');
  return tags.trim() === '*' || (tags.match(/"[^"]*"/g)?.includes(strongTag) ?? false);
}

/** Sets the validators of a 200. True when the client's copy is current: then the answer is a 304 without a body. */
export function isNotModified(ctx: Koa.Context, validators: Validators): boolean {
  const { etag, modifiedAtMs } = validators;
  const isCurrent = isCopyCurrent(ctx.req, validators);
  ctx.status = isCurrent ? 304 : 200;
  ctx.set('ETag', etag);
  if (modifiedAtMs !== undefined) ctx.set('Last-Modified', new Date(modifiedAtMs).toUTCString());
  return isCurrent;
}
