import type { IncomingMessage, OutgoingMessage } from 'node:http';

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
  call: IncomingMessage,
  { host, key }: { readonly host: string; readonly key: string | undefined },
): string[] {
  const { headers } = call;
  const lines = ['Host', host, ...endToEnd(call, NOT_FORWARDED)];
  // The framing on this side decides: a call without a body must not get a length.
  const length = headers['content-length'];
  if (headers['transfer-encoding'] !== undefined) lines.push('Transfer-Encoding', 'chunked');
  else if (length !== undefined) lines.push('Content-Length', length);
  if (key !== undefined) lines.push('Authorization', `Bearer ${key}`);
  return lines;
}

/** Returns the headers of an answer for the client. */
export function answerHeaders(answer: IncomingMessage): string[] {
  return endToEnd(answer, NOT_RETURNED);
}

/**
 * Sets the headers of a message: names and values in turns, a repeated header several times. They
 * replace those of the same names.
 */
export function setHeaders(message: OutgoingMessage, lines: readonly string[]): void {
  for (let i = 0; i < lines.length; i += 2) message.removeHeader(lines[i] ?? '');
  for (let i = 0; i < lines.length; i += 2)
    message.appendHeader(lines[i] ?? '', lines[i + 1] ?? '');
}

/** True when the transfer coding of the body would be lost in forwarding. */
export function hasUnsupportedCoding({ headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && coding.trim().toLowerCase() !== 'chunked';
}

/** Returns the headers that are for the other end. */
function endToEnd({ rawHeaders: raw, headers }: IncomingMessage, refused: RegExp): string[] {
  const connectionNames = namesIn(headers.connection);
  const lines: string[] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]];
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.test(lower) || refused.test(lower) || connectionNames.has(lower)) continue;
    lines.push(name, value);
  }
  return lines;
}

/** Returns the headers that `Connection` names. */
function namesIn(connection = ''): ReadonlySet<string> {
  const names = connection.toLowerCase().split(',');
  // `Content-Length` never belongs to the connection, whatever `Connection` says.
  return new Set(names.map((name) => name.trim()).filter((name) => name !== 'content-length'));
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
