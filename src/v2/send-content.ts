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
import { createLinkSignature } from '../auth/link-signature.ts';
import { isoTime } from '../upstreams/job-links.ts';

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
  if (ctx.method !== 'HEAD') return ok({ status, headers, stream });
  stream.destroy();
  return ok({ status, headers });
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

/** An asset's bytes as a link grants them. */
type Grant = { readonly user: string; readonly assetId: string };

/** Signs and checks links to assets' bytes that carry their own authorization instead of a key. */
export type ContentSigner = {
  /** The query of a link that works until it expires, and that moment as v2 writes it. */
  sign(grant: Grant): { readonly query: string; readonly expiresAt: string };
  /** The user for whom a link was made; `undefined` when it was altered or has expired. */
  userOf(assetId: string, query: URLSearchParams): string | undefined;
};

/** "At most an hour": an old link found in a history or a log opens nothing. */
const LIFETIME_S = 60 * 60;

/** `secret` is that of the data folder or the shared ledger: links outlive restarts, at every replica. */
export function createContentSigner(options: {
  readonly secret: Buffer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}): ContentSigner {
  const { now } = options;
  const signature = createLinkSignature(options.secret, 'signed content');
  return {
    sign(grant) {
      const expiresS = Math.floor(now() / 1000) + LIFETIME_S;
      const shown = { user: grant.user, expires: String(expiresS) };
      const query = new URLSearchParams({
        ...shown,
        signature: signature.sign(claimsOf(grant, expiresS)),
      });
      return { query: query.toString(), expiresAt: isoTime(expiresS * 1000) };
    },
    userOf(assetId, query) {
      const user = query.get('user') ?? '';
      const expiresS = Number(query.get('expires'));
      const claims = claimsOf({ user, assetId }, expiresS);
      const isGenuine = signature.isGenuine(claims, query.get('signature') ?? '');
      return isGenuine && now() < expiresS * 1000 ? user : undefined;
    },
  };
}

function claimsOf({ user, assetId }: Grant, expiresS: number): string {
  return new URLSearchParams({ user, asset: assetId, expires: String(expiresS) }).toString();
}
