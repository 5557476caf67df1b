import { rm } from 'node:fs/promises';
import type Router from '@koa/router';
import type Koa from 'koa';
import parseRange from 'range-parser';
import { type Form, receiveMultipart } from '../multipart.ts';
import { isJsonObject } from '../wire/json.ts';
import { type AssetUpload, type ByteRange, type Content, type Result, ok, refuse } from '../wire/jobs.ts';
import type { Asset } from '../wire/v2.ts';
import { type V2Deps, callerOf, linkedAsset, readBody, send } from './http.ts';

type Ctx = Koa.ParameterizedContext<Koa.DefaultState, Koa.DefaultContext> & { params: { [name: string]: string } };

const BLAKE3 = /^blake3:[0-9a-f]{64}$/;
const FROM_HASH_BYTES = 64 * 1024;

/** `/assets…`: uploads, records and bytes. */
export function assetRoutes(
  router: Router<Koa.DefaultState, Koa.DefaultContext>,
  deps: V2Deps,
): void {
  const { jobs } = deps;
  router.post('/assets', (ctx) => upload(ctx as unknown as Ctx, deps));
  router.post('/assets/from-hash', async (ctx) => {
    const body = await readBody(ctx, FROM_HASH_BYTES);
    const request = body.ok ? readFromHash(body.value) : body;
    sendCreated(ctx as unknown as Ctx, request.ok ? await jobs.assetFromHash(callerOf(ctx), request.value) : request);
  });
  router.head('/assets/by-hash/:hash', async (ctx) => {
    const found = await jobs.hasBlob(callerOf(ctx), ctx.params['hash'] ?? '');
    ctx.status = found.ok && found.value ? 200 : 404;
  });
  router.get('/assets/:id', async (ctx) => {
    const asset = await jobs.asset(callerOf(ctx), ctx.params['id'] ?? '');
    send(ctx, asset.ok ? ok(linkedAsset(ctx, asset.value)) : asset);
  });
  router.delete('/assets/:id', async (ctx) => {
    const removed = await jobs.deleteAsset(callerOf(ctx), ctx.params['id'] ?? '');
    if (!removed.ok) return send(ctx, removed);
    ctx.status = 204;
  });
  router.get('/assets/:id/content', (ctx) => content(ctx as unknown as Ctx, deps));
}

async function upload(ctx: Ctx, deps: V2Deps): Promise<void> {
  const received = await receiveMultipart(ctx.req, { dir: deps.spoolDir, maxFileBytes: deps.maxUploadBytes });
  if (!received.ok) {
    ctx.set('Connection', 'close');
    return send(ctx, refuse(received.status, received.status === 413 ? 'payload_too_large' : 'invalid_request', received.message));
  }
  const form = received.value;
  try {
    const request = readUpload(form);
    sendCreated(ctx, request.ok ? await deps.jobs.createAsset(callerOf(ctx), request.value) : request);
  } finally {
    await Promise.all(form.files.map(({ file }) => rm(file.path, { force: true })));
  }
}

/** The fields decide; the part's own headers are only what the client library happened to write. */
function readUpload({ fields, files }: Form): Result<AssetUpload> {
  const part = files.find(({ field }) => field === 'file');
  const contentType = fields.get('content_type')?.[0];
  const filePath = fields.get('file_path')?.[0];
  if (!part || files.length > 1) return refuse(422, 'invalid_body', 'One part named "file" is needed.');
  if (!contentType || !/^[\w.+-]+\/[\w.+-]+(;.*)?$/.test(contentType)) {
    return refuse(422, 'invalid_body', 'The field content_type is needed and must be a media type.');
  }
  if (!filePath) return refuse(422, 'invalid_body', 'The field file_path is needed.');
  const options = readOptions({
    filePath,
    tags: fields.get('tags'),
    expiresIn: fields.get('expires_in')?.[0],
  });
  if (!options.ok) return options;
  const expectedHash = fields.get('expected_hash')?.[0]?.toLowerCase();
  return ok({ ...options.value, file: part.file, contentType, ...(expectedHash ? { expectedHash } : {}) });
}

type FromHash = Parameters<V2Deps['jobs']['assetFromHash']>[1];

function readFromHash(body: unknown): Result<FromHash> {
  if (!isJsonObject(body as never)) return refuse(400, 'invalid_request', 'The body must be a JSON object.');
  const { hash, file_path: filePath, tags, expires_in: expiresIn } = body as { [name: string]: unknown };
  if (typeof hash !== 'string' || !BLAKE3.test(hash)) {
    return refuse(422, 'invalid_body', 'hash must be "blake3:" and 64 lower-case hex digits.');
  }
  const options = readOptions({
    filePath: filePath ?? hash.replace(':', '-'),
    tags: tags ?? undefined,
    expiresIn: expiresIn ?? undefined,
  });
  return options.ok ? ok({ ...options.value, hash }) : options;
}

function readOptions(given: {
  filePath: unknown;
  tags: unknown;
  expiresIn: unknown;
}): Result<Pick<AssetUpload, 'filePath' | 'tags' | 'expiresInSeconds'>> {
  const { filePath, tags, expiresIn } = given;
  if (typeof filePath !== 'string' || !isSafePath(filePath)) {
    return refuse(422, 'invalid_body', 'file_path must be a relative path without "..".');
  }
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'))) {
    return refuse(422, 'invalid_body', 'tags must be texts.');
  }
  const seconds = expiresIn === undefined ? undefined : Number(expiresIn);
  if (seconds !== undefined && !Number.isSafeInteger(seconds)) {
    return refuse(422, 'invalid_body', 'expires_in must be an integer number of seconds.');
  }
  return ok({
    filePath,
    ...(tags === undefined ? {} : { tags: tags as string[] }),
    ...(seconds === undefined ? {} : { expiresInSeconds: seconds }),
  });
}

function isSafePath(path: string): boolean {
  const names = path.split('/');
  return path.length <= 1024 && !/[\p{Cc}\\]/u.test(path) && names.every((name) => name !== '' && name !== '.' && name !== '..');
}

/** 201 for new bytes, 200 when they were known. */
function sendCreated(ctx: Ctx, result: Result<Asset>): void {
  const status = result.ok && result.value.created_new === false ? 200 : 201;
  send(ctx, result.ok ? ok(linkedAsset(ctx, result.value)) : result, status);
}

async function content(ctx: Ctx, { jobs }: V2Deps): Promise<void> {
  const caller = callerOf(ctx);
  const id = ctx.params['id'] ?? '';
  const asset = await jobs.asset(caller, id);
  if (!asset.ok) return send(ctx, asset);
  const etag = asset.value.hash === null ? undefined : `"${asset.value.hash}"`;
  if (etag) ctx.set('ETag', etag);
  ctx.set('Accept-Ranges', 'bytes');
  if (etag && ctx.get('If-None-Match').split(/\s*,\s*/).includes(etag)) return void (ctx.status = 304);
  const range = wantedRange(ctx, asset.value.size_bytes);
  if (range === 'unsatisfiable') {
    ctx.set('Content-Range', `bytes */${asset.value.size_bytes}`);
    return send(ctx, refuse(416, 'range_not_satisfiable', 'The range lies outside of the content.'));
  }
  const opened = await jobs.content(caller, id, range);
  if (!opened.ok) return send(ctx, opened);
  sendContent(ctx, opened.value);
}

/** One range; several at once are answered with everything, as the standard allows. */
function wantedRange(ctx: Ctx, size: number): ByteRange | undefined | 'unsatisfiable' {
  const header = ctx.get('Range');
  if (header === '') return undefined;
  const ranges = parseRange(size, header);
  if (ranges === -1) return 'unsatisfiable';
  if (ranges === -2 || ranges.length !== 1 || ranges.type !== 'bytes') return undefined;
  return ranges[0];
}

/** Sent as a download: what a user stored must never run as a page of this origin. */
function sendContent(ctx: Ctx, opened: Content): void {
  if (opened.kind === 'redirect') {
    ctx.status = 302;
    ctx.set('Location', opened.location);
    return;
  }
  const { range, totalBytes } = opened;
  ctx.status = range ? 206 : 200;
  if (range) ctx.set('Content-Range', `bytes ${range.start}-${range.end}/${totalBytes}`);
  ctx.set('Content-Type', opened.contentType);
  ctx.set('Content-Disposition', 'attachment');
  ctx.set('Content-Security-Policy', "sandbox; default-src 'none'");
  ctx.set('Content-Length', String(range ? range.end - range.start + 1 : totalBytes));
  ctx.body = opened.stream;
}
