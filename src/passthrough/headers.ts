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
  return {
    Host: host,
    ...toHeaders(endToEnd(request.rawHeaders, NOT_FORWARDED)),
    ...framing(request.headers),
    ...(key !== undefined && { Authorization: `Bearer ${key}` }),
  };
}

/** The headers of an answer as they go to the client. */
export function answerHeaders(raw: RawHeaders): Headers {
  return toHeaders(endToEnd(raw, NOT_RETURNED));
}

/** Whether the body comes as a kind of coding that would be lost on the way. */
export function isOddlyCoded({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && coding.trim().toLowerCase() !== 'chunked';
}

/** A body goes on as it is framed here; a call without one must not get one. */
function framing(headers: IncomingMessage['headers']): Headers {
  if (headers['transfer-encoding'] !== undefined) return { 'Transfer-Encoding': 'chunked' };
  const length = headers['content-length'];
  return length === undefined ? {} : { 'Content-Length': length };
}

function endToEnd(raw: RawHeaders, refused: RegExp): [string, string][] {
  const lines = pairs(raw);
  const named = new Set(
    lines
      .filter(([name]) => name.toLowerCase() === 'connection')
      .flatMap(([, value]) => value.toLowerCase().split(','))
      .map((name) => name.trim()),
  );
  // A length is no matter of the connection, whatever it says.
  named.delete('content-length');
  return lines.filter(([name]) => {
    const lower = name.toLowerCase();
    return !named.has(lower) && !HOP_BY_HOP.test(lower) && !refused.test(lower);
  });
}

function pairs(raw: RawHeaders): [string, string][] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1] ?? '']] : []));
}

function toHeaders(lines: readonly [string, string][]): Headers {
  const byName = new Map<string, { name: string; values: string[] }>();
  for (const [name, value] of lines) {
    const known = byName.get(name.toLowerCase());
    if (known) known.values.push(value);
    else byName.set(name.toLowerCase(), { name, values: [value] });
  }
  return Object.fromEntries(
    [...byName.values()].map(({ name, values }) => [
      name,
      values.length === 1 ? (values[0] ?? '') : values,
    ]),
  );
}
