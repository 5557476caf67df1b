import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import { bytesAtMost } from '../lib/lru-size.ts';

/** The content codings of compressed texts, best first. */
const ENCODINGS = ['br', 'gzip'] as const;

export type Encoding = (typeof ENCODINGS)[number];

const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

/** The compressors. Both work on threads of their own. */
export const COMPRESS: { readonly [name in Encoding]: (bytes: Buffer) => Promise<Buffer> } = {
  br: (bytes) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: promisify<Buffer, Buffer>(gzip),
};

/** Clients send the same header with every call. */
const cache = new LRUCache<string, readonly Encoding[]>(bytesAtMost(256 * 1024));

/**
 * Returns the codings that a client accepts, best first. Without the header, none, whatever the
 * standard allows.
 */
export function encodingsFor(ctx: Koa.Context): readonly Encoding[] {
  const { 'accept-encoding': header = '' } = ctx.headers;
  const text = header.toString();
  const cached = cache.get(text);
  if (cached) return cached;
  const accepted = ENCODINGS.filter((name) => text !== '' && ctx.acceptsEncodings(name) === name);
  cache.set(text, accepted);
  return accepted;
}
