import type Koa from 'koa';
import { parseRanges } from '../http/byte-ranges.ts';
import { isCopyCurrent } from '../http/file-headers.ts';
import {
  type ByteRange,
  type Content,
  type AssetCalls,
  type Result,
  ok,
  refuse,
} from '../protocol/job-api.ts';
import type { HandlerReply, V2Request } from './reply.ts';

type Bytes = Extract<Content, { kind: 'bytes' }>;

/** Uploaded pages must not run in this origin. */
const SAFE_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'X-Content-Type-Options': 'nosniff',
};

/** A range whose answer shows size, type and validator and carries one byte. */
const FIRST_BYTE: ByteRange = { start: 0, end: 0 };

type Open = (range?: ByteRange) => Promise<Result<Content>>;

/** Answers with an asset's bytes, the requested range of them, or a redirect to them. */
export async function sendContent(
  jobs: AssetCalls,
  { ctx, caller, params: { id = '' } }: V2Request,
): Promise<Result<HandlerReply>> {
  const open: Open = (range) => jobs.content(caller, id, range);
  if (asksForAll(ctx)) return answer(await open());
  const shown = await openFirstByte(open);
  if (!shown.ok || shown.value.kind === 'redirect') return answer(shown);
  shown.value.stream.destroy();
  if (isCurrent(ctx, shown.value))
    return ok({ status: 304, headers: { ...SAFE_HEADERS, ...validators(shown.value) } });
  const range = rangeOf(ctx, shown.value);
  if (range === 'unsatisfiable') return unsatisfiable(ctx, shown.value);
  return ctx.method === 'HEAD' ? ok(headOf({ ...shown.value, range })) : answer(await open(range));
}

function asksForAll(ctx: Koa.Context): boolean {
  return ctx.method === 'GET' && ctx.get('Range') === '' && ctx.get('If-None-Match') === '';
}

async function openFirstByte(open: Open): Promise<Result<Content>> {
  const content = await open(FIRST_BYTE);
  // An empty file has no first byte.
  return !content.ok && content.error.status === 416 ? await open() : content;
}

function answer(content: Result<Content>): Result<HandlerReply> {
  if (!content.ok) return content;
  if (content.value.kind === 'redirect') {
    return ok({ status: 302, headers: { Location: content.value.location } });
  }
  return ok({ ...headOf(content.value), stream: content.value.stream });
}

type Head = Omit<Bytes, 'range'> & { readonly range?: ByteRange | undefined };

function headOf(content: Head) {
  const { range, totalBytes, contentType } = content;
  const headers = {
    ...SAFE_HEADERS,
    ...validators(content),
    'Accept-Ranges': 'bytes',
    'Content-Type': contentType,
    'Content-Length': String(range ? range.end - range.start + 1 : totalBytes),
    ...(range && { 'Content-Range': `bytes ${range.start}-${range.end}/${totalBytes}` }),
  };
  return { status: range ? 206 : 200, headers };
}

function validators({ etag }: { readonly etag?: string | undefined }): { readonly ETag?: string } {
  return etag === undefined ? {} : { ETag: etag };
}

function isCurrent(ctx: Koa.Context, { etag }: Bytes): boolean {
  return etag !== undefined && isCopyCurrent(ctx.req, { etag });
}

/**
 * Returns the range to send. Only a single byte range is served; several ranges, another unit or an
 * invalid header get the whole content.
 */
function rangeOf(
  ctx: Koa.Context,
  { totalBytes, etag }: Bytes,
): ByteRange | 'unsatisfiable' | undefined {
  const condition = ctx.get('If-Range');
  if (condition !== '' && condition !== etag) return undefined;
  const header = ctx.get('Range');
  if (!header.startsWith('bytes=')) return undefined;
  const ranges = parseRanges(totalBytes, header);
  if (ranges === -1) return 'unsatisfiable';
  if (ranges === -2 || ranges.length !== 1) return undefined;
  return ranges[0];
}

function unsatisfiable(ctx: Koa.Context, { totalBytes }: Bytes): Result<never> {
  ctx.set('Content-Range', `bytes */${totalBytes}`);
  const details = { size_bytes: totalBytes };
  return refuse(416, 'range_not_satisfiable', 'The range lies outside of the content.', {
    details,
  });
}
