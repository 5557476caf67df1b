import type { IncomingMessage, ServerResponse } from 'node:http';
import { exposeHeaders } from '../http/answer.ts';
import type { ProxyRequest } from './proxy-exchange.ts';
import { answerHeaders, setHeaders } from './headers.ts';

const SANDBOX_HEADER = 'Content-Security-Policy';

/**
 * Answers may contain files of users. This policy keeps such a file from running as a page of this
 * server.
 */
const SANDBOX_POLICY = "default-src 'none'; sandbox";

/**
 * Writes the head of an answer, with the headers that `addHeaders` adds and those that
 * middleware has set. Returns false when it could not be written.
 */
export function writeAnswerHead(
  res: ServerResponse,
  { addHeaders }: ProxyRequest,
  answer: IncomingMessage,
): boolean {
  const { statusCode: status = 0, statusMessage } = answer;
  if (status < 200) return false;
  const earlierHeaders = res.getHeaders();
  try {
    setHeaders(res, answerHeaders(answer));
    if (!res.hasHeader(SANDBOX_HEADER)) res.setHeader(SANDBOX_HEADER, SANDBOX_POLICY);
    addHeaders?.(res, status);
    exposeHeaders(res, () => res.getHeaderNames().filter((name) => !(name in earlierHeaders)));
    res.writeHead(status, statusMessage);
  } catch {
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    for (const [name, value = ''] of Object.entries(earlierHeaders)) res.setHeader(name, value);
    return false;
  }
  return true;
}
