import type { ServerResponse } from 'node:http';
import type { ProxyRequest } from './proxy-exchange.ts';
import { privateCaching } from '../../http/answer.ts';
import { type RawHeaders, answerHeaders, hasHeader, toHeaderObject } from './headers.ts';

/** The head of an answer. */
export type AnswerHead = {
  readonly status: number;
  readonly reason: string;
  readonly raw: RawHeaders;
};

/**
 * Answers may contain files of users. This header keeps such a file from running as a page of this
 * server.
 */
const SANDBOX_HEADER = ['Content-Security-Policy', "default-src 'none'; sandbox"] as const;

/**
 * Writes the head of an answer, with the headers that `beside` adds. Returns false when it could
 * not be written.
 */
export function writeAnswerHead(
  res: ServerResponse,
  { headersBeside, extraHeaders }: Pick<ProxyRequest, 'headersBeside' | 'extraHeaders'>,
  { status, reason, raw }: AnswerHead,
): boolean {
  if (status < 200) return false;
  const lines = answerHeaders(raw, SANDBOX_HEADER, extraHeaders ?? []);
  if (headersBeside) lines.push(...headersBeside(lines, status));
  if (!hasHeader(lines, 'Cache-Control'))
    lines.push(
      'Cache-Control',
      privateCaching((name) => hasHeader(lines, name)),
    );
  putLengthLast(lines);
  const earlierHeaders = extraHeaders ? {} : res.getHeaders();
  try {
    if (extraHeaders) res.writeHead(status, reason, lines);
    else mergeHead(res, { status, reason, raw: lines });
  } catch {
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    for (const [name, value = ''] of Object.entries(earlierHeaders)) res.setHeader(name, value);
    return false;
  }
  return true;
}

/**
 * Moves the length to the end: Node writes a `Content-Disposition` behind the length as UTF-8, not
 * byte by byte.
 */
function putLengthLast(lines: string[]): void {
  const at = lines.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
  if (at >= 0) lines.push(...lines.splice(at, 2));
}

/** Merges the head with headers that middleware has set before. */
function mergeHead(res: ServerResponse, { status, reason, raw }: AnswerHead): void {
  const headers = toHeaderObject(raw);
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
  exposeHeaders(res, Object.keys(headers));
  res.writeHead(status, reason);
}

/** Sends a head before its body. Otherwise Node would write its bytes anew, as UTF-8. */
export function flushHead(res: ServerResponse): void {
  res.write(Buffer.alloc(0));
}

const EXPOSED_HEADERS = 'Access-Control-Expose-Headers';

/** Lists headers for pages: in CORS mode a page may read only these. */
export function exposeHeaders(res: ServerResponse, names: readonly string[]): void {
  const exposed = res.getHeader(EXPOSED_HEADERS);
  if (typeof exposed === 'string') res.setHeader(EXPOSED_HEADERS, [exposed, ...names].join(', '));
}
