import type Koa from 'koa';
import parseRange from 'range-parser';
import {
  type ByteRange,
  type Content,
  type JobApi,
  type Result,
  ok,
  refuse,
} from '../protocol/job-api.ts';
import type { Reply, V2Request } from './reply.ts';

type Bytes = Extract<Content, { kind: 'bytes' }>;

/**
 * Uploaded pages must not run in this origin, and shared caches must not store a caller's bytes.
 */
const SAFE_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; sandbox",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'private, no-cache',
};

/** Answers with an asset's bytes, the requested range of them, or a redirect to them. */
export async function sendContent(
  jobs: Pick<JobApi, 'content'>,
  { ctx, caller, params }: V2Request,
): Promise<Result<Reply>> {
  const { id = '' } = params;
  const whole = await jobs.content(caller, id);
  if (!whole.ok || whole.value.kind === 'redirect') return answer(ctx, whole);
  if (isCurrent(ctx, whole.value)) {
    whole.value.stream.destroy();
    return ok({ status: 304, headers: { ...SAFE_HEADERS, ...validators(whole.value) } });
  }
  const range = rangeOf(ctx, whole.value);
  if (range === undefined) return answer(ctx, whole);
  whole.value.stream.destroy();
  if (range === 'unsatisfiable') return unsatisfiable(ctx, whole.value);
  return answer(ctx, await jobs.content(caller, id, range));
}

function answer(ctx: Koa.Context, content: Result<Content>): Result<Reply> {
  if (!content.ok) return content;
  if (content.value.kind === 'redirect') {
    const headers = { Location: content.value.location, 'Cache-Control': 'no-store' };
    return ok({ status: 302, headers });
  }
  const { stream, range, totalBytes, contentType } = content.value;
  const headers = {
    ...SAFE_HEADERS,
    ...validators(content.value),
    'Accept-Ranges': 'bytes',
    'Content-Type': contentType,
    'Content-Length': String(range ? range.end - range.start + 1 : totalBytes),
    ...(range && { 'Content-Range': `bytes ${range.start}-${range.end}/${totalBytes}` }),
  };
  const status = range ? 206 : 200;
  if (ctx.method === 'HEAD') {
    stream.destroy();
    return ok({ status, headers });
  }
  stream.reuseBuffersFor?.(ctx.res);
  return ok({ status, headers, stream });
}

function validators({ etag }: Bytes): { readonly ETag?: string } {
  return etag === undefined ? {} : { ETag: etag };
}

/** Koa compares the request's conditions with the headers of the response. */
function isCurrent(ctx: Koa.Context, { etag }: Bytes): boolean {
  if (etag === undefined) return false;
  ctx.status = 200;
  ctx.set('ETag', etag);
  return ctx.fresh;
}

/**
 * A single byte range is served; several ranges, another unit or an invalid header get the whole
 * content.
 */
function rangeOf(
  ctx: Koa.Context,
  { totalBytes, etag }: Bytes,
): ByteRange | 'unsatisfiable' | undefined {
  const condition = ctx.get('If-Range');
  if (condition !== '' && condition !== etag) return undefined;
  const header = ctx.get('Range');
  if (!header.startsWith('bytes=')) return undefined;
  const ranges = parseRange(totalBytes, header);
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
