import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { type ByteRange, type ContentBytes, type Result, ok } from '../wire/jobs.ts';
import { badAnswer } from './errors.ts';
import type { RemoteLimits } from './limits.ts';
import type { WireAnswer } from './pool.ts';
import { resumable } from './resume.ts';

/** An answer whose body is still to be read. */
export type Head = Extract<WireAnswer, { ok: true }>;

export type BytesDeps = { readonly limits: Pick<RemoteLimits, 'readRetryMs'> };

type Asked = {
  readonly range?: ByteRange | undefined;
  /** Asks again for a part of the very same bytes. */
  readonly again: (headers: Readonly<Record<string, string>>) => Promise<Head | undefined>;
};

type Part = ByteRange & { readonly totalBytes: number };

/** How often broken-off bytes are taken up again. */
const RESUMES = 3;

export function rangeHeader({ start, end }: ByteRange): { readonly range: string } {
  return { range: `bytes=${start}-${Number.isFinite(end) ? end : ''}` };
}

/** What a 200 or a 206 brings; nothing when it is not the part that was asked for. */
export function bytesOf(
  deps: BytesDeps,
  head: Head,
  asked: Asked,
): Result<ContentBytes> | undefined {
  const { status, headers, body } = head;
  const { 'content-type': contentType = 'application/octet-stream', etag } = headers;
  const part = status === 206 ? partOf(headers) : wholeOf(headers);
  if (status === 206 && !(part && asked.range && isWithin(part, asked.range))) {
    body.destroy();
    return undefined;
  }
  // Asked for as they are; whoever packs them all the same says nothing of their length.
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    body.destroy();
    return badAnswer();
  }
  const facts = { kind: 'bytes', contentType, ...(etag !== undefined && { etag }) } as const;
  if (part === undefined) return ok({ ...facts, stream: body, totalBytes: Infinity });
  const { totalBytes, start, end } = part;
  const stream = unbroken(deps, head, { part, again: asked.again });
  return ok({ ...facts, stream, totalBytes, ...(status === 206 && { range: { start, end } }) });
}

type Breakable = { readonly part: Part; readonly again: Asked['again'] };

/** Only a strong validator tells that the rest is of the same bytes. */
function unbroken(
  { limits }: BytesDeps,
  { headers, body }: Head,
  { part, again }: Breakable,
): Readable {
  const { etag } = headers;
  if (etag === undefined || !etag.startsWith('"')) return body;
  return resumable(body, {
    startByte: part.start,
    endByte: part.end,
    tries: RESUMES,
    waitMs: limits.readRetryMs,
    async reopen(start) {
      const rest = { start, end: part.end };
      const head = await again({ ...rangeHeader(rest), 'if-range': etag });
      if (!head) return 'failed';
      const got = head.status === 206 ? partOf(head.headers) : undefined;
      if (got?.start === start && got.totalBytes === part.totalBytes) return head.body;
      head.body.destroy();
      return head.status >= 500 ? 'failed' : 'changed';
    },
  });
}

/** `bytes 2-4/10`; a total of `*` is no total. */
function partOf(headers: IncomingHttpHeaders): Part | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/i.exec(headers['content-range'] ?? '');
  if (!match) return undefined;
  const [start = 0, end = 0, totalBytes = 0] = match.slice(1).map(Number);
  return start <= end && end < totalBytes ? { start, end, totalBytes } : undefined;
}

function wholeOf({ 'content-length': length }: IncomingHttpHeaders): Part | undefined {
  if (length === undefined) return undefined;
  return { start: 0, end: Number(length) - 1, totalBytes: Number(length) };
}

function isWithin(part: ByteRange, asked: ByteRange): boolean {
  return part.start === asked.start && part.end <= asked.end;
}
