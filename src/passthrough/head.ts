import type { ServerResponse } from 'node:http';
import type { Order } from './call.ts';
import { type RawHeaders, answerHeaders, byName } from './headers.ts';

/** How an answer begins. */
export type AnswerHead = {
  readonly status: number;
  readonly reason: string;
  readonly raw: RawHeaders;
};

/** Files of users are among what comes back; none is a page that may act as ours. */
const NOT_A_PAGE_OF_OURS = ['Content-Security-Policy', "default-src 'none'; sandbox"] as const;

/** Writes the head of an answer, with what `beside` makes of it; whether it could be written. */
export function beginAnswer(
  res: ServerResponse,
  { beside, carries }: Pick<Order, 'beside' | 'carries'>,
  { status, reason, raw }: AnswerHead,
): boolean {
  if (status < 200) return false;
  const lines = answerHeaders(raw, NOT_A_PAGE_OF_OURS, carries ?? []);
  if (beside) lines.push(...beside(lines));
  putLengthLast(lines);
  const before = carries ? {} : res.getHeaders();
  try {
    if (carries) res.writeHead(status, reason, lines);
    else writeAmong(res, { status, reason, raw: lines });
  } catch {
    for (const name of res.getHeaderNames()) res.removeHeader(name);
    for (const [name, value = ''] of Object.entries(before)) res.setHeader(name, value);
    return false;
  }
  return true;
}

/** A `Content-Disposition` that Node meets after the length is no longer bytes to it, but UTF-8. */
function putLengthLast(lines: string[]): void {
  const at = lines.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'content-length');
  if (at >= 0) lines.push(...lines.splice(at, 2));
}

/** Some headers have been set before. */
function writeAmong(res: ServerResponse, { status, reason, raw }: AnswerHead): void {
  const headers = byName(raw);
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
  expose(res, Object.keys(headers));
  res.writeHead(status, reason);
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
