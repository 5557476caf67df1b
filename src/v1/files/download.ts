import { createHash } from 'node:crypto';
import type Koa from 'koa';
import { parseRanges, readOneRange } from '../../http/byte-ranges.ts';
import type { FileRow } from '../../ledger/ledger.ts';
import type {
  ByteRange,
  Caller,
  Content,
  ContentBytes,
  AssetCalls,
} from '../../protocol/job-api.ts';
import { V1Error, plainError, sendEmpty } from '../../dialects/errors.ts';
import { toV1FileError } from '../../dialects/file-error.ts';
import type { Pictures, Rendering } from '../../files/pictures.ts';
import { disconnectSignal } from '../../http/client-connection.ts';
import { dispositionOf, fileHeaders, isCopyCurrent } from '../../http/file-headers.ts';
import { openContent, readImageBytes } from '../../files/asset-content.ts';
import { type Readable, Transform, pipeline } from 'node:stream';

/** A file that is sent to one caller. */
export type Download = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  readonly row: FileRow;
};

/** A range whose answer tells the size of the file and carries one byte. */
const FIRST_BYTE: ByteRange = { start: 0, end: 0 };

/** Sends the file unchanged: whole, one range of it, or a 304 when the client has it already. */
export async function serveFile(jobs: AssetCalls, download: Download): Promise<void> {
  const { ctx, row } = download;
  if (!meetsPreconditions(ctx, row)) return sendEmpty(ctx, 412);
  const validators = { etag: etagOf(row), modifiedAtMs: row.modifiedAtMs };
  if (isCopyCurrent(ctx.req, validators)) return setFileHeaders(ctx, row, 304);
  const range = await rangeOf(jobs, download);
  const content = range === 'unsatisfiable' ? range : await openPart(jobs, download, range);
  if (content === 'unsatisfiable') return refuseRange(jobs, download);
  if (content.kind === 'redirect') return sendLocation(ctx, content.location);
  const rangeSent = content.range;
  setFileHeaders(ctx, row, rangeSent === undefined ? 200 : 206);
  if (rangeSent)
    ctx.set('Content-Range', `bytes ${rangeSent.start}-${rangeSent.end}/${content.totalBytes}`);
  sendStream(ctx, content, row);
}

/** Sends a rendered picture. Like v1's, it has no validators and no ranges. */
export async function serveRendered(
  { jobs, pictures }: { readonly jobs: AssetCalls; readonly pictures: Pictures },
  { ctx, caller, row }: Download,
  rendering: Rendering,
): Promise<void> {
  const signal = disconnectSignal(ctx.res);
  const image = await pictures.draw(caller.user, async () => {
    const bytes = await readImageBytes(jobs, { caller, assetId: row.assetId, signal });
    if (!bytes.ok) throw toV1FileError(bytes.error);
    return { how: rendering, files: [bytes.value] };
  });
  if (!image.ok) throw new V1Error(400, plainError('invalid_picture', image.reason));
  const format = rendering.as === 'preview' ? rendering.format : 'png';
  ctx.status = 200;
  ctx.set('Content-Type', `image/${format}`);
  ctx.set('Content-Disposition', dispositionOf(row.filename));
  ctx.body = image.bytes;
}

/**
 * Returns the upstream's link to a file; `undefined` if there is none. Throws when the file is
 * gone.
 */
export async function upstreamLinkOf(
  jobs: AssetCalls,
  { caller, row }: Omit<Download, 'ctx'>,
): Promise<string | undefined> {
  const content = await jobs.content(caller, row.assetId, FIRST_BYTE);
  // An empty file has no first byte.
  if (!content.ok && content.error.status === 416) return undefined;
  if (!content.ok) throw toV1FileError(content.error);
  if (content.value.kind === 'redirect') return content.value.location;
  content.value.stream.destroy();
  return undefined;
}

async function openPart(
  jobs: AssetCalls,
  { caller, row }: Download,
  range?: ByteRange,
): Promise<Content | 'unsatisfiable'> {
  const content = await openContent(jobs, { caller, assetId: row.assetId }, range);
  if (content.ok) return content.value;
  if (range && content.error.status === 416) return 'unsatisfiable';
  throw toV1FileError(content.error);
}

/** Redirects the caller to the bytes. Such a link carries its own authorization. */
export function sendLocation(ctx: Koa.Context, location: string): void {
  ctx.set('Location', location);
  sendEmpty(ctx, 302);
}

/**
 * Makes the ETag from the bytes, so that a file saved again is still known; v1's is made of time
 * and size. Ids may be long and differ at their ends only.
 */
function etagOf({ hash, assetId }: FileRow): string {
  const bytes = hash?.replace('blake3:', '') ?? createHash('sha256').update(assetId).digest('hex');
  return `"${bytes.slice(0, 32)}"`;
}

function modifiedAt({ modifiedAtMs }: FileRow): string {
  return new Date(modifiedAtMs).toUTCString();
}

function setFileHeaders(ctx: Koa.Context, row: FileRow, status: number): void {
  ctx.status = status;
  ctx.set(fileHeaders(row, ctx.get('Sec-Fetch-Dest').toLowerCase()));
  ctx.set('ETag', etagOf(row));
  ctx.set('Last-Modified', modifiedAt(row));
  if (status !== 304) ctx.set('Accept-Ranges', 'bytes');
}

/**
 * Checks the conditions of a request as v1 does: the date counts only without `If-Match`, and an
 * unreadable date does not count.
 */
function meetsPreconditions(ctx: Koa.Context, row: FileRow): boolean {
  const wanted = ctx.get('If-Match');
  if (wanted !== '')
    return wanted === '*' || wanted.split(',').some((tag) => tag.trim() === etagOf(row));
  const unmodifiedSinceMs = Date.parse(ctx.get('If-Unmodified-Since'));
  return !(Date.parse(modifiedAt(row)) > unmodifiedSinceMs);
}

/** Stands for an unknown size. 0 does not: one upstream reports 0 for every file. */
const UNKNOWN_SIZE = Number.MAX_SAFE_INTEGER;

async function rangeOf(
  jobs: AssetCalls,
  download: Download,
): Promise<ByteRange | undefined | 'unsatisfiable'> {
  const { ctx, row } = download;
  const condition = ctx.get('If-Range');
  if (condition !== '' && condition !== etagOf(row) && condition !== modifiedAt(row))
    return undefined;
  if (ctx.get('Range') === '') return undefined;
  const header = readOneRange(ctx.get('Range'));
  if (header === undefined) return 'unsatisfiable';
  const countsFromEnd = header.startsWith('bytes=-');
  const size = countsFromEnd ? await sizeOf(jobs, download) : row.sizeBytes || UNKNOWN_SIZE;
  if (size === Infinity) return undefined;
  const ranges = parseRanges(size, header);
  const [range] = typeof ranges === 'number' ? [] : ranges;
  if (range === undefined) return 'unsatisfiable';
  return { start: range.start, end: range.end < UNKNOWN_SIZE - 1 ? range.end : Infinity };
}

async function sizeOf(jobs: AssetCalls, download: Download): Promise<number> {
  if (download.row.sizeBytes > 0) return download.row.sizeBytes;
  const content = await openPart(jobs, download, FIRST_BYTE);
  if (content === 'unsatisfiable') return 0;
  if (content.kind === 'redirect') return Infinity;
  content.stream.destroy();
  return content.totalBytes;
}

async function refuseRange(jobs: AssetCalls, download: Download): Promise<void> {
  const { ctx, row } = download;
  const size = await sizeOf(jobs, download);
  const { 'Content-Type': type = '', 'Content-Disposition': disposition = '' } = fileHeaders(
    row,
    '',
  );
  sendEmpty(ctx, 416);
  ctx.set({ 'Content-Type': type, 'Content-Disposition': disposition });
  if (size < Infinity) ctx.set('Content-Range', `bytes */${size}`);
}

function sendStream(ctx: Koa.Context, content: ContentBytes, { sizeBytes }: FileRow): void {
  const { stream, totalBytes, range } = content;
  if (ctx.method === 'HEAD') stream.destroy();
  // An answer without a length ends when its connection ends, for whatever reason.
  else if (totalBytes === Infinity) ctx.body = failIfShorter(stream, sizeBytes);
  else ctx.body = stream;
  const length = range === undefined ? totalBytes : range.end - range.start + 1;
  if (length < Infinity) ctx.length = length;
}

/** Passes the bytes through. Fails when the stream ends before `bytes` bytes. */
function failIfShorter(stream: Readable, bytes: number): Readable {
  let missingBytes = bytes;
  const counting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      missingBytes -= chunk.length;
      done(null, chunk);
    },
    flush: (done) =>
      done(missingBytes > 0 ? new Error(`${missingBytes} bytes of a file are missing`) : null),
  });
  // The reader of the stream gets the error.
  pipeline(stream, counting, () => {});
  return counting;
}
