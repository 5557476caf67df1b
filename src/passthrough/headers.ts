import type { IncomingMessage, OutgoingMessage } from 'node:http';

/** Alternating names and values. A repeated header keeps its lines. */
export type RawHeaders = readonly string[];

/** Headers for the next connection only, which are never forwarded. */
const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings)$/;

/**
 * Headers that are not about the call: keys, facts of browsers about their page, and the origin and
 * routing of the request. `Expect` was answered here.
 */
const NOT_FORWARDED =
  /^(host|expect|content-length|authorization|x-api-key|cookie2?|origin|referer|sec-.*|access-control-.*|forwarded|x-forwarded(-.*)?|x-real-ip|x-(http-)?method-override|x-http-method|x-original-(url|host)|x-rewrite-url)$/;

/** Headers of the service that the client would relate to this server. */
const NOT_RETURNED =
  /^(set-cookie2?|access-control-.*|alt-svc|clear-site-data|strict-transport-security)$/;

/**
 * Returns the end-to-end headers of a call for the upstream, with the only key that may be sent.
 */
export function requestHeaders(
  { rawHeaders, headers }: IncomingMessage,
  { host, key }: { readonly host: string; readonly key: string | undefined },
): string[] {
  const lines = ['Host', host];
  addEndToEnd(lines, rawHeaders, NOT_FORWARDED);
  // The framing on this side decides: a call without a body must not get a length.
  const length = headers['content-length'];
  if (headers['transfer-encoding'] !== undefined) lines.push('Transfer-Encoding', 'chunked');
  else if (length !== undefined) lines.push('Content-Length', length);
  if (key !== undefined) lines.push('Authorization', `Bearer ${key}`);
  return lines;
}

/** Returns the headers of an answer for the client. */
export function answerHeaders(raw: RawHeaders): string[] {
  const lines: string[] = [];
  addEndToEnd(lines, raw, NOT_RETURNED);
  return lines;
}

/** Sets the headers of a message. They replace those of the same names. */
export function setHeaders(message: OutgoingMessage, lines: RawHeaders): void {
  for (let i = 0; i < lines.length; i += 2) message.removeHeader(lines[i] ?? '');
  for (let i = 0; i < lines.length; i += 2)
    message.appendHeader(lines[i] ?? '', lines[i + 1] ?? '');
}

/** True when the transfer coding of the body would be lost in forwarding. */
export function hasUnsupportedCoding({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && coding.trim().toLowerCase() !== 'chunked';
}

/** Copies the headers that are for the other end. */
function addEndToEnd(lines: string[], raw: RawHeaders, refused: RegExp): void {
  const connectionNames = namesInConnection(raw);
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]];
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.test(lower) || refused.test(lower) || connectionNames?.has(lower)) continue;
    lines.push(name, value);
  }
}

/** Returns the headers that `Connection` names. It is rarely set. */
function namesInConnection(raw: RawHeaders): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.length !== 10 || raw[i]?.toLowerCase() !== 'connection') continue;
    const value = raw[i + 1] ?? '';
    // These headers concern this connection anyway.
    if (value === 'keep-alive' || value === 'close') continue;
    names ??= new Set();
    for (const name of value.toLowerCase().split(',')) names.add(name.trim());
  }
  // `Content-Length` never belongs to the connection, whatever `Connection` says.
  names?.delete('content-length');
  return names;
}

/** The contract names these headers `X-Service-…`; present services and clients use `X-Comfy-…`. */
const ALIASES = [
  ['x-comfy-', 'x-service-'],
  ['x-service-', 'x-comfy-'],
] as const;

/** Adds the missing aliases: headers that an answer has under one of the two names, under the other name. */
export function addAliases(answer: OutgoingMessage): void {
  for (const name of answer.getHeaderNames()) {
    for (const [prefix, other] of ALIASES) {
      if (!name.startsWith(prefix)) continue;
      const alias = other + name.slice(prefix.length);
      if (!answer.hasHeader(alias)) answer.setHeader(alias, answer.getHeader(name) ?? '');
    }
  }
}
