import type { ServerResponse } from 'node:http';
import { exposeHeaders } from '../http/answer.ts';
import type { ProxyRequest } from './proxy-exchange.ts';
import { type RawHeaders, answerHeaders, hasHeader, toHeaderObject } from './headers.ts';

/** The head of an answer. */
export type AnswerHead = {
  readonly status: number;
  readonly reason: string;
  readonly raw: RawHeaders;
};

const SANDBOX_HEADER = 'Content-Security-Policy';

/**
 * Answers may contain files of users. This policy keeps such a file from running as a page of this
 * server.
 */
const SANDBOX_POLICY = "default-src 'none'; sandbox";

/**
 * Writes the head of an answer, with the headers that `headersBeside` adds and those that
 * middleware has set. Returns false when it could not be written.
 */
export function writeAnswerHead(
  res: ServerResponse,
  { headersBeside }: ProxyRequest,
  { status, reason, raw }: AnswerHead,
): boolean {
  if (status < 200) return false;
  const lines = answerHeaders(raw);
  if (!hasHeader(lines, SANDBOX_HEADER)) lines.push(SANDBOX_HEADER, SANDBOX_POLICY);
  if (headersBeside) lines.push(...headersBeside(lines, status));
  const headers = toHeaderObject(lines);
  const earlierHeaders = res.getHeaders();
  try {
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
    exposeHeaders(res, Object.keys(headers));
    res.writeHead(status, reason);
  } catch {
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    for (const [name, value = ''] of Object.entries(earlierHeaders)) res.setHeader(name, value);
    return false;
  }
  return true;
}

/** Sends a head before its body. Otherwise Node would write its bytes anew, as UTF-8. */
export function flushHead(res: ServerResponse): void {
  res.write(Buffer.alloc(0));
}
