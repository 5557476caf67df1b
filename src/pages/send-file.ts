import { extname } from 'node:path';
import type Koa from 'koa';
import { contentType } from 'mime-types';
import { createCompressor } from '../http/compression.ts';
import { isCopyCurrent } from '../http/file-headers.ts';
import { type StaticFile, sendFile } from '../http/static-file.ts';

/** Types worth making smaller; pictures, fonts and archives are small already. */
const COMPRESSIBLE = /^(text\/|application\/(javascript|json|manifest\+json|xml|wasm)|image\/svg)/;

/** Returns a function that sends files of pages, compressed where that makes them smaller. */
export function createFileSender(): (ctx: Koa.Context, file: StaticFile) => Promise<void> {
  const compress = createCompressor();
  return async (ctx, file) => {
    const type = contentType(extname(file.path)) || 'application/octet-stream';
    ctx.set('Content-Type', type);
    if (!COMPRESSIBLE.test(type)) return sendFile(ctx, file);
    ctx.vary('Accept-Encoding');
    const compressed = await compress(ctx, file);
    if (!compressed) return sendFile(ctx, file);
    ctx.set('Content-Encoding', compressed.encoding);
    ctx.status = 200;
    ctx.set('ETag', compressed.etag);
    if (isCopyCurrent(ctx.req, compressed)) {
      ctx.remove('Content-Encoding');
      ctx.status = 304;
      return;
    }
    ctx.body = compressed.bytes;
    ctx.set('Content-Type', type);
  };
}
