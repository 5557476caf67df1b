import type { ServerResponse } from 'node:http';
import { type Headers, type RawHeaders, answerHeaders } from './headers.ts';

/** How an answer begins. */
export type AnswerHead = {
  readonly status: number;
  readonly reason: string;
  readonly raw: RawHeaders;
};

/** Files of users are among what comes back; none is a page that may act as ours. */
const NOT_A_PAGE_OF_OURS = "default-src 'none'; sandbox";

/** Writes the head of an answer, with what `beside` makes of it; whether it could be written. */
export function beginAnswer(
  res: ServerResponse,
  { beside }: { readonly beside?: (headers: Headers) => Headers },
  { status, reason, raw }: AnswerHead,
): boolean {
  if (status < 200) return false;
  const headers = answerHeaders(raw);
  if (beside) Object.assign(headers, beside(headers));
  const before = res.getHeaders();
  try {
    res.setHeader('Content-Security-Policy', NOT_A_PAGE_OF_OURS);
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    expose(res, Object.keys(headers));
    res.writeHead(status, reason);
  } catch {
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    for (const [name, value = ''] of Object.entries(before)) res.setHeader(name, value);
    return false;
  }
  return true;
}

/** Sends a head whose body is still to come; by itself Node would write its bytes anew, as UTF-8. */
export function sendHead(res: ServerResponse): void {
  res.write(Buffer.alloc(0));
}

const LISTED = 'Access-Control-Expose-Headers';

/** In CORS mode a page may read only what is listed. */
export function expose(res: ServerResponse, names: readonly string[]): void {
  const listed = res.getHeader(LISTED);
  if (typeof listed === 'string') res.setHeader(LISTED, [listed, ...names].join(', '));
}
