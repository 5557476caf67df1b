import { readFile } from 'node:fs/promises';
import type Koa from 'koa';
import { LRUCache } from 'lru-cache';
import { COMPRESS, type Encoding, encodingsFor } from './content-encoding.ts';
import { createSemaphore } from '../lib/concurrency.ts';
import type { StaticFile } from './static-file.ts';

/** The compressed form of a file. */
type CompressedFile = {
  readonly encoding: Encoding;
  readonly bytes: Buffer;
  readonly etag: string;
};

/** Returns the smallest form of a file that the client accepts. The form is made once and cached. */
export type Compressor = (
  ctx: Koa.Context,
  file: StaticFile,
) => Promise<CompressedFile | undefined>;

const CACHE_BYTES = 64 * 1024 * 1024;
const MIN_BYTES = 1024;
/** Larger files are sent uncompressed: compressing them would fill memory. */
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_CONCURRENT = 2;
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
    const [best] = encodingsFor(ctx);
    const isWorthCompressing = file.sizeBytes >= MIN_BYTES && file.sizeBytes <= MAX_BYTES;
    return best && isWorthCompressing ? compress(file, best) : undefined;
  };
}
