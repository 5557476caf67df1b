import { readFile } from 'node:fs/promises';
import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import { COMPRESS, type Encoding, encodingsFor } from './content-encoding.ts';
import { createSemaphore } from '../lib/concurrency.ts';
import { type StaticFile, findBelow } from './static-file.ts';

/** The compressed form of a file: another file, or bytes in memory. */
type CompressedFile = { readonly encoding: Encoding } & (
  | { readonly file: StaticFile }
  | { readonly bytes: Buffer; readonly etag: string }
);

/**
 * Returns the smallest form of a file that the client accepts. The form is searched or made once
 * and then cached.
 */
export type Compressor = (
  ctx: Koa.Context,
  file: StaticFile,
) => Promise<CompressedFile | undefined>;

/**
 * The extensions of compressed files beside the original. Such a file is preferred to compressing
 * here.
 */
const SUFFIXES: { readonly [name in Encoding]: string } = { br: '.br', gzip: '.gz' };

const CACHE_BYTES = 64 * 1024 * 1024;
const MIN_BYTES = 1024;
/** Larger files are sent uncompressed: compressing them would fill memory. */
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_CONCURRENT = 2;
/**
 * Archives and checkouts round times. A compressed file that is older than this belongs to an
 * earlier build.
 */
const MTIME_SLACK_MS = 2000;

export function createCompressor(): Compressor {
  const withSlot = createSemaphore(MAX_CONCURRENT);
  const cache = new LRUCache<string, Buffer, { file: StaticFile; encoding: Encoding }>({
    maxSize: CACHE_BYTES,
    sizeCalculation: ({ length }) => length + 1,
    fetchMethod: (_key, _stale, { context: { file, encoding } }) =>
      withSlot(async () => COMPRESS[encoding](await readFile(file.path))),
  });

  async function compress(
    file: StaticFile,
    encoding: Encoding,
  ): Promise<CompressedFile | undefined> {
    const key = `${encoding} ${file.etag} ${file.path}`;
    const bytes = await cache.fetch(key, { context: { file, encoding } });
    if (bytes === undefined || bytes.length >= file.sizeBytes) return undefined;
    return { encoding, bytes, etag: file.etag.replace(/"$/, `-${encoding}"`) };
  }

  return async (ctx, file) => {
    // A range means bytes of the uncompressed file.
    if (ctx.get('Range') !== '') return undefined;
    const accepted = encodingsFor(ctx);
    for (const encoding of accepted) {
      const sibling = await siblingOf(file, SUFFIXES[encoding]);
      if (sibling) return { encoding, file: sibling };
    }
    const [best] = accepted;
    const isWorthCompressing = file.sizeBytes >= MIN_BYTES && file.sizeBytes <= MAX_BYTES;
    return best && isWorthCompressing ? compress(file, best) : undefined;
  };
}

async function siblingOf(file: StaticFile, suffix: string): Promise<StaticFile | undefined> {
  const path = file.path.slice(file.root.length) + suffix;
  const address = path.split(/[\\/]/).map(encodeURIComponent).join('/');
  const sibling = await findBelow(file.root, address.startsWith('/') ? address : `/${address}`);
  const isCurrent = sibling && sibling.modifiedAtMs + MTIME_SLACK_MS >= file.modifiedAtMs;
  return isCurrent ? sibling : undefined;
}
