import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type Koa from 'koa';

/** The content codings of compressed texts, best first. */
const ENCODINGS = ['br', 'gzip'] as const;

export type Encoding = (typeof ENCODINGS)[number];

const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

/** The compressors. Both work on threads of their own. */
export const COMPRESS: { readonly [name in Encoding]: (bytes: Buffer) => Promise<Buffer> } = {
  br: (bytes) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: promisify<Buffer, Buffer>(gzip),
};

/**
 * Returns the codings that a client accepts, best first. Without the header, none, whatever the
 * standard allows.
 */
export function encodingsFor(ctx: Koa.Context): readonly Encoding[] {
  if (ctx.get('Accept-Encoding') === '') return [];
  return ENCODINGS.filter((name) => ctx.acceptsEncodings(name) === name);
}
