import type { IncomingMessage } from 'node:http';
import { realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type Koa from 'koa';
import send from 'send';
import { toPlainRange } from './byte-ranges.ts';
import { sendEmpty } from '../dialects/errors.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { decodedPart } from '../protocol/request-target.ts';

/** A regular file below a root folder, by its real path. */
export type StaticFile = {
  readonly root: string;
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** It changes when the file is written again. */
  readonly etag: string;
};

/**
 * Matches what a decoded path segment must not have: separators, control characters, a leading dot.
 */
const UNSERVABLE = /[/\\]|^\./;
const ABSENT_CODES = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES']);

/**
 * Finds the file that a request path names, segment by segment. `undefined` when there is none,
 * when it is hidden, or when a link leads out of the root.
 */
export async function findBelow(root: string, urlPath: string): Promise<StaticFile | undefined> {
  // Text that cannot be decoded stays unchanged: no file has such a name by accident.
  const escaped = urlPath.split('/').slice(1);
  const segments = escaped.map((segment) => decodedPart(segment) ?? segment);
  if (
    !segments.every((part) => part !== '' && !UNSERVABLE.test(part) && !hasControlCharacter(part))
  )
    return undefined;
  try {
    const realRoot = await realpath(root);
    const path = await realpath(join(realRoot, ...segments));
    if (!path.startsWith(realRoot.endsWith(sep) ? realRoot : realRoot + sep)) return undefined;
    const stats = await stat(path);
    return stats.isFile() ? fileOf(realRoot, path, stats) : undefined;
  } catch (error) {
    if (ABSENT_CODES.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** Describes a file that is known to be below its root. */
export function fileOf(
  root: string,
  path: string,
  stats: { readonly size: number; readonly mtimeMs: number; readonly ino: number },
): StaticFile {
  const modifiedHex = Math.trunc(stats.mtimeMs * 1000).toString(16);
  return {
    root,
    path,
    sizeBytes: stats.size,
    modifiedAtMs: stats.mtimeMs,
    etag: `"${modifiedHex}-${stats.size.toString(16)}-${stats.ino.toString(16)}"`,
  };
}

/** Streams a file, or the requested range of it, with its validators. The caller sets the type. */
export function sendFile(ctx: Koa.Context, file: StaticFile): Promise<void> {
  ctx.status = 200;
  // Koa has set "OK". For other statuses Node supplies the text.
  ctx.res.statusMessage = '';
  ctx.set('ETag', file.etag);
  const urlPath = relative(file.root, file.path).split(sep).map(encodeURIComponent).join('/');
  const transfer = send(requestFor(file, ctx.req), `/${urlPath}`, {
    root: file.root,
    dotfiles: 'allow',
    index: false,
    etag: false,
    cacheControl: false,
  });
  return new Promise((resolve) => {
    transfer.on('error', (error: { status?: number; headers?: { [name: string]: string } }) => {
      resolve(sendRefusal(ctx, error.status ?? 404, error.headers ?? {}));
    });
    transfer.on('directory', () => resolve(sendRefusal(ctx, 404, {})));
    ctx.res.once('close', resolve);
    ctx.res.once('finish', resolve);
    ctx.respond = false;
    transfer.pipe(ctx.res);
  });
}

/**
 * Returns the request as `send` has to read it. Without `Cache-Control`: `fetch` adds `no-cache` to
 * conditional calls, and `send` would then ignore their conditions. With a range that it can read:
 * it sends the whole file for several ranges, and for unreadable ones.
 */
function requestFor({ sizeBytes }: StaticFile, request: IncomingMessage): IncomingMessage {
  const { 'cache-control': _, range, ...others } = request.headers;
  const headers = range ? { ...others, range: toPlainRange(sizeBytes, range) } : others;
  return Object.create(request, { headers: { value: headers } }) as IncomingMessage;
}

/**
 * Answers when the file was removed meanwhile, or when the ranges or conditions of the request do
 * not fit it.
 */
function sendRefusal(ctx: Koa.Context, status: number, headers: { [name: string]: string }): void {
  if (ctx.res.headersSent) return void ctx.res.destroy();
  ctx.respond = true;
  for (const name of ['Content-Encoding', 'Content-Length', 'ETag', 'Last-Modified']) {
    ctx.remove(name);
  }
  ctx.set(headers);
  sendEmpty(ctx, status);
}
