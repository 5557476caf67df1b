import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import { contentType } from 'mime-types';
import { COMPRESS, type Encoding, encodingsFor } from '../http/content-encoding.ts';
import { isNotModified } from '../http/file-headers.ts';
import { type StaticFile, sendFile } from '../http/static-file.ts';
import { createSemaphore } from '../lib/concurrency.ts';

/** Types worth making smaller; pictures, fonts and archives are small already. */
const COMPRESSIBLE = /^(text\/|application\/(javascript|json|manifest\+json|xml|wasm)|image\/svg)/;
const MIN_BYTES = 1024;
/** Larger files are sent uncompressed: compressing them would fill memory. */
const MAX_BYTES = 16 * 1024 * 1024;
const CACHE_BYTES = 64 * 1024 * 1024;
const MAX_CONCURRENT = 2;

const withSlot = createSemaphore(MAX_CONCURRENT);
const compressed = new LRUCache<string, Buffer, { file: StaticFile; encoding: Encoding }>({
  maxSize: CACHE_BYTES,
  sizeCalculation: ({ length }) => length + 1,
  fetchMethod: (_key, _stale, { context: { file, encoding } }) =>
    withSlot(async () => COMPRESS[encoding](await readFile(file.path))),
});

/** Sends a file of a page, compressed where that makes it smaller. */
export async function sendPageFile(ctx: Koa.Context, file: StaticFile): Promise<void> {
  const type = contentType(extname(file.path)) || 'application/octet-stream';
  ctx.set('Content-Type', type);
  if (!COMPRESSIBLE.test(type)) return sendFile(ctx, file);
  ctx.vary('Accept-Encoding');
  const [encoding] = encodingsFor(ctx);
  const isWorthCompressing = file.sizeBytes >= MIN_BYTES && file.sizeBytes <= MAX_BYTES;
  // A range means bytes of the uncompressed file.
  if (!encoding || !isWorthCompressing || ctx.get('Range') !== '') return sendFile(ctx, file);
  const key = `${encoding} ${file.etag} ${file.path}`;
  const bytes = await compressed.fetch(key, { context: { file, encoding } });
  if (bytes === undefined || bytes.length >= file.sizeBytes) return sendFile(ctx, file);
  if (isNotModified(ctx, { etag: file.etag.replace(/"$/, `-${encoding}"`) })) return;
  ctx.set('Content-Encoding', encoding);
  ctx.body = bytes;
  ctx.set('Content-Type', type);
}
