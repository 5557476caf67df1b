import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { type ByteRange, type ContentBytes, type Result, ok } from '../../protocol/job-api.ts';
import { invalidAnswer } from '../calls/errors.ts';
import type { RemoteClient } from '../calls/calls.ts';
import type { OpenAnswer, RequestHeaders } from '../calls/exchange.ts';
import { resumedBytes } from '../../blobs/resumed-bytes.ts';

type BytesRequest = {
  readonly range?: ByteRange | undefined;
  /** Requests a part of exactly the same bytes again. */
  readonly fetch: (headers: RequestHeaders) => Promise<Result<OpenAnswer>>;
};

type BytePart = ByteRange & { readonly totalBytes: number };

/** How often an interrupted transfer is resumed. */
const MAX_RESUMES = 3;

export function rangeHeader({ start, end }: ByteRange): { readonly range: string } {
  return { range: `bytes=${start}-${Number.isFinite(end) ? end : ''}` };
}

/** Returns the bytes of a 200 or 206; `undefined` when it is not the requested part. */
export function contentBytes(
  client: RemoteClient,
  answer: OpenAnswer,
  request: BytesRequest,
): Result<ContentBytes> | undefined {
  const { status, headers, body } = answer;
  const { 'content-type': contentType = 'application/octet-stream', etag } = headers;
  const part = status === 206 ? contentRange(headers) : wholeRange(headers);
  const isAskedPart = part && request.range && isWithin(part, request.range);
  if (status === 206 && !(isAskedPart && hasLengthOf(part, headers))) {
    body.destroy();
    return undefined;
  }
  // `identity` was requested. A server that compresses nevertheless states no usable length.
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') {
    body.destroy();
    return invalidAnswer();
  }
  const meta = { kind: 'bytes', contentType, ...(etag !== undefined && { etag }) } as const;
  if (part === undefined) return ok({ ...meta, stream: body, totalBytes: Infinity });
  const { totalBytes, start, end } = part;
  const stream = resumingStream(client, answer, { part, fetch: request.fetch });
  return ok({ ...meta, stream, totalBytes, ...(status === 206 && { range: { start, end } }) });
}

type ResumablePart = { readonly part: BytePart; readonly fetch: BytesRequest['fetch'] };

/**
 * Returns a stream that resumes. Only a strong validator shows that the rest belongs to the same
 * bytes.
 */
function resumingStream(
  { limits, clock }: RemoteClient,
  { headers, body }: OpenAnswer,
  { part, fetch }: ResumablePart,
): Readable {
  const { etag, 'content-length': length } = headers;
  const validator = etag?.startsWith('"') ? etag : undefined;
  // A stated length is that of the part, and the connection ensures it.
  if (validator === undefined && length !== undefined) return body;
  const condition = validator !== undefined && { 'if-range': validator };
  let triesLeft = validator === undefined ? 0 : MAX_RESUMES;
  async function reopen(start: number, cause: unknown): Promise<Readable> {
    while (!stream.destroyed && triesLeft-- > 0) {
      await clock.sleep(limits.readRetryMs);
      const fetched = await fetch({ ...rangeHeader({ start, end: part.end }), ...condition });
      if (!fetched.ok) continue;
      const answer = fetched.value;
      const received = answer.status === 206 ? contentRange(answer.headers) : undefined;
      if (received?.start === start && received.totalBytes === part.totalBytes) return answer.body;
      answer.body.destroy();
      if (answer.status < 500) break;
    }
    throw cause;
  }
  const stream = resumedBytes(body, { ...part, reopen });
  // A generator that never started releases nothing.
  return stream.once('close', () => body.destroy());
}

/** Reads `bytes 2-4/10`. A total of `*` counts as unknown. */
function contentRange(headers: IncomingHttpHeaders): BytePart | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/i.exec(headers['content-range'] ?? '');
  if (!match) return undefined;
  const [start = 0, end = 0, totalBytes = 0] = match.slice(1).map(Number);
  return start <= end && end < totalBytes ? { start, end, totalBytes } : undefined;
}

function wholeRange({ 'content-length': length }: IncomingHttpHeaders): BytePart | undefined {
  if (length === undefined) return undefined;
  return { start: 0, end: Number(length) - 1, totalBytes: Number(length) };
}

function hasLengthOf(
  { start, end }: ByteRange,
  { 'content-length': length }: IncomingHttpHeaders,
): boolean {
  return length === undefined || Number(length) === end - start + 1;
}

function isWithin(part: ByteRange, request: ByteRange): boolean {
  return part.start === request.start && part.end <= request.end;
}
