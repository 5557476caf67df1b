import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';

/** Computes BLAKE3 of bytes that are added in pieces. */
export interface Hasher {
  readonly update: (chunk: Uint8Array) => void;
  /** Returns `blake3:<64 hex>`. No further call is allowed. */
  readonly digest: () => string;
  /** Releases the memory of an unfinished hash that the garbage collector cannot reach. */
  readonly discard: () => void;
}

/** The functions that both implementations have. */
type Blake3 = {
  update(chunk: Uint8Array): unknown;
  digest(encoding: 'hex'): string;
  /** Only state in WebAssembly's memory has to be released. */
  dispose?(): void;
};

type NativeModule = { readonly Blake3Hasher: new () => Blake3 };
type PortableModule = { readonly createHash: () => Blake3 };

let newBlake3: (() => Blake3) | undefined;

/**
 * Creates a hasher. No other module computes BLAKE3. The implementation is loaded when it is first
 * needed.
 */
export function createHasher(): Hasher {
  newBlake3 ??= loadBlake3();
  const hash = newBlake3();
  return {
    update: (chunk) => void hash.update(chunk),
    digest: () => `blake3:${hash.digest('hex')}`,
    discard: () => hash.dispose?.(),
  };
}

/** Returns `blake3:<64 hex>` of complete bytes. */
export function hashOf(bytes: Uint8Array): string {
  const hasher = createHasher();
  hasher.update(bytes);
  return hasher.digest();
}

/**
 * Smaller pieces would mean more calls for a large file; larger ones more memory for thousands of
 * small files.
 */
const READ_BYTES = 256 * 1024;

/** Reads a file piece by piece. */
export async function hashFile(path: string): Promise<HashedBytes> {
  return await hashAll(createReadStream(path, { highWaterMark: READ_BYTES }));
}

/** Returns `blake3:<64 hex>` of all bytes of a stream. */
export async function hashOfStream(stream: AsyncIterable<unknown>): Promise<string> {
  return (await hashAll(stream)).hash;
}

type HashedBytes = { readonly hash: string; readonly sizeBytes: number };

async function hashAll(stream: AsyncIterable<unknown>): Promise<HashedBytes> {
  const hasher = createHasher();
  let sizeBytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      hasher.update(chunk);
      sizeBytes += chunk.length;
    }
    return { hash: hasher.digest(), sizeBytes };
  } finally {
    hasher.discard();
  }
}

/**
 * Loads the implementation. Native code is eight times as fast; it is an optional package, since
 * some platforms have none.
 */
function loadBlake3(): () => Blake3 {
  const load = createRequire(import.meta.url);
  try {
    const { Blake3Hasher } = load('@napi-rs/blake-hash') as NativeModule;
    return () => new Blake3Hasher();
  } catch {
    return (load('blake3') as PortableModule).createHash;
  }
}
