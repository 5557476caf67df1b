import { buffer } from 'node:stream/consumers';
import type Koa from 'koa';
import parseRange from 'range-parser';
import type { FileRow } from '../ledger/ledger.ts';
import type { ByteRange, Caller, Content, JobApi } from '../wire/jobs.ts';
import { V1Error, sendEmpty } from './errors.ts';
import { relayRefusal } from './relay.ts';
import { type Rendering, render } from './render.ts';
import { servedAs } from './served-as.ts';

/** One file on its way to one caller. */
export type Download = {
  readonly ctx: Koa.Context;
  readonly caller: Caller;
  readonly row: FileRow;
};

type ContentApi = Pick<JobApi, 'content'>;
type Bytes = Extract<Content, { kind: 'bytes' }>;

/** Beyond this a picture is not taken into memory to be decoded. */
const MAX_RENDER_BYTES = 256 * 1024 * 1024;

/** Sends the file as it is: whole, one range of it, or the word that the client has it already. */
export async function serveFile(jobs: ContentApi, download: Download): Promise<void> {
  const { ctx, row } = download;
  if (isFresh(ctx, row)) return describe(ctx, row, 304);
  const range = rangeOf(ctx, row);
  if (range === 'unsatisfiable') return refuseRange(ctx, row);
  const content = await openContent(jobs, download, range);
  if (content.kind === 'redirect') return sendLocation(ctx, content.location);
  const part = content.range;
  describe(ctx, row, part === undefined ? 200 : 206);
  if (part) ctx.set('Content-Range', `bytes ${part.start}-${part.end}/${content.totalBytes}`);
  sendStream(ctx, content);
}

/** Sends the picture drawn anew. Like v1's, it has no validators and no ranges. */
export async function serveRendered(
  jobs: ContentApi,
  download: Download,
  rendering: Rendering,
): Promise<void> {
  const { ctx, row } = download;
  const content = await openContent(jobs, download);
  if (content.kind === 'redirect') return sendLocation(ctx, content.location);
  const picture = await render(await readWhole(content), rendering);
  if (!picture.ok) throw new V1Error(400, picture.reason);
  ctx.status = 200;
  ctx.set('Content-Type', picture.contentType);
  ctx.set('Content-Disposition', servedAs(row, 'image')['Content-Disposition'] ?? '');
  ctx.body = picture.bytes;
}

/** Opens an asset; one that is gone, or any other refusal, is thrown as the answer to send. */
export async function openContent(
  jobs: ContentApi,
  { caller, row }: Pick<Download, 'caller' | 'row'>,
  range?: ByteRange,
): Promise<Content> {
  const content = await jobs.content(caller, row.assetId, range);
  if (!content.ok) throw relayRefusal(content.error);
  return content.value;
}

/** All bytes of an opened asset, within what may be decoded. */
export async function readWhole({ stream, totalBytes }: Bytes): Promise<Buffer> {
  if (totalBytes <= MAX_RENDER_BYTES) return buffer(stream);
  stream.destroy();
  throw new V1Error(400, 'The file is too large to be shown as a picture.');
}

/** Sends the caller where the bytes are; such a link authorizes itself. */
export function sendLocation(ctx: Koa.Context, location: string): void {
  ctx.set('Location', location);
  ctx.set('Cache-Control', 'no-store');
  sendEmpty(ctx, 302);
}

/** v1's ETag is made of time and size; ours of the bytes, so that a file saved again is still known. */
function etagOf({ hash, assetId }: FileRow): string {
  return `"${(hash ?? assetId).replace('blake3:', '').slice(0, 32)}"`;
}

function modifiedAt({ modifiedAtMs }: FileRow): string {
  return new Date(modifiedAtMs).toUTCString();
}

function describe(ctx: Koa.Context, row: FileRow, status: number): void {
  ctx.status = status;
  ctx.set(servedAs(row, ctx.get('Sec-Fetch-Dest').toLowerCase()));
  ctx.set('ETag', etagOf(row));
  ctx.set('Last-Modified', modifiedAt(row));
  if (status !== 304) ctx.set('Accept-Ranges', 'bytes');
}

/** Asks Koa whether the client's copy is current; the validators stay only when it is. */
function isFresh(ctx: Koa.Context, row: FileRow): boolean {
  ctx.status = 200;
  ctx.set({ ETag: etagOf(row), 'Last-Modified': modifiedAt(row) });
  if (ctx.fresh) return true;
  ctx.remove('ETag');
  ctx.remove('Last-Modified');
  return false;
}

/** One range is served; several, or one nobody can read, get the whole file. */
function rangeOf(ctx: Koa.Context, row: FileRow): ByteRange | undefined | 'unsatisfiable' {
  const condition = ctx.get('If-Range');
  if (condition !== '' && condition !== etagOf(row) && condition !== modifiedAt(row))
    return undefined;
  const header = ctx.get('Range');
  if (!header.startsWith('bytes=')) return undefined;
  const ranges = parseRange(row.sizeBytes, header);
  if (ranges === -1) return 'unsatisfiable';
  if (ranges === -2 || ranges.length !== 1) return undefined;
  return ranges[0];
}

function refuseRange(ctx: Koa.Context, row: FileRow): void {
  const { 'Content-Type': type = '', 'Content-Disposition': disposition = '' } = servedAs(row, '');
  sendEmpty(ctx, 416);
  ctx.set({ 'Content-Type': type, 'Content-Disposition': disposition });
  ctx.set('Content-Range', `bytes */${row.sizeBytes}`);
}

function sendStream(ctx: Koa.Context, { stream, totalBytes, range }: Bytes): void {
  if (ctx.method === 'HEAD') stream.destroy();
  else ctx.body = stream;
  ctx.length = range === undefined ? totalBytes : range.end - range.start + 1;
}
