import type { IncomingMessage } from 'node:http';

/** Names and values by turns, as they came. */
export type RawHeaders = readonly string[];

/** What Node sends; a repeated header keeps its lines. */
export type Headers = { [name: string]: string | string[] };

/** Said by one side of a connection to the other, and by nobody beyond it. */
const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings)$/;

/**
 * What is about the way to us and not about the call: keys, what browsers say of their page, where
 * a request came from and what it should be taken for. `Expect` has been answered.
 */
const NOT_FORWARDED =
  /^(host|expect|content-length|authorization|x-api-key|cookie2?|origin|referer|sec-.*|access-control-.*|forwarded|x-forwarded(-.*)?|x-real-ip|x-(http-)?method-override|x-http-method|x-original-(url|host)|x-rewrite-url)$/;

/** What a service says about its own address would be taken as said of ours. */
const NOT_RETURNED =
  /^(set-cookie2?|access-control-.*|alt-svc|clear-site-data|strict-transport-security)$/;

/** The headers of a call as they go upstream: end to end, with the only key that may go along. */
export function requestHeaders(
  request: Pick<IncomingMessage, 'rawHeaders' | 'headers'>,
  options: { readonly host: string; readonly key: string | undefined },
): Headers {
  const { host, key } = options;
  const headers: Headers = Object.create(null);
  headers['Host'] = host;
  addEndToEnd(headers, request.rawHeaders, NOT_FORWARDED);
  addFraming(headers, request.headers);
  if (key !== undefined) headers['Authorization'] = `Bearer ${key}`;
  return headers;
}

/** The headers of an answer as they go to the client. */
export function answerHeaders(raw: RawHeaders): Headers {
  const headers: Headers = Object.create(null);
  addEndToEnd(headers, raw, NOT_RETURNED);
  return headers;
}

/** Whether the body comes as a kind of coding that would be lost on the way. */
export function isOddlyCoded({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && coding.trim().toLowerCase() !== 'chunked';
}

/** A body goes on as it is framed here; a call without one must not get one. */
function addFraming(headers: Headers, given: IncomingMessage['headers']): void {
  const length = given['content-length'];
  if (given['transfer-encoding'] !== undefined) headers['Transfer-Encoding'] = 'chunked';
  else if (length !== undefined) headers['Content-Length'] = length;
}

function addEndToEnd(headers: Headers, raw: RawHeaders, refused: RegExp): void {
  const ofThisHop = namedByConnection(raw);
  /** By their names in lower case, as they were written first. */
  const written = new Map<string, string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]];
    const lower = name.toLowerCase();
    if (ofThisHop?.has(lower) || HOP_BY_HOP.test(lower) || refused.test(lower)) continue;
    const before = written.get(lower);
    if (before === undefined) {
      written.set(lower, name);
      headers[name] = value;
    } else headers[before] = [headers[before] ?? [], value].flat();
  }
}

/** What a connection says is about itself; hardly any says so. */
function namedByConnection(raw: RawHeaders): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]?.length !== 10 || raw[i]?.toLowerCase() !== 'connection') continue;
    names ??= new Set();
    for (const name of (raw[i + 1] ?? '').toLowerCase().split(',')) names.add(name.trim());
  }
  // A length is no matter of the connection, whatever it says.
  names?.delete('content-length');
  return names;
}
