import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';

/** BLAKE3, fed piece by piece. */
export type Hasher = ReturnType<typeof createHasher>;

/** The part both implementations share. */
type Blake3 = {
  update(chunk: Uint8Array): unknown;
  digest(encoding: 'hex'): string;
  /** Only state in WebAssembly's memory has to be released. */
  dispose?(): void;
};

type NativeModule = { readonly Blake3Hasher: new () => Blake3 };
type PortableModule = { readonly createHash: () => Blake3 };

let newBlake3: (() => Blake3) | undefined;

/** The only module that computes BLAKE3; the implementation is loaded when it is first needed. */
export function createHasher() {
  newBlake3 ??= loadBlake3();
  const hash = newBlake3();
  return {
    update: (chunk: Uint8Array): void => void hash.update(chunk),
    /** `blake3:<64 hex>`; the last thing to ask for. */
    digest: (): string => `blake3:${hash.digest('hex')}`,
    /** Frees what an unfinished hash holds outside the garbage collector's reach. */
    discard: (): void => hash.dispose?.(),
  };
}

/** `blake3:<64 hex>` of bytes that are all there. */
export function hashOf(bytes: Uint8Array): string {
  const hasher = createHasher();
  hasher.update(bytes);
  return hasher.digest();
}

/** Smaller pieces would cost a large file calls, larger ones would cost thousands of small files memory. */
const READ_BYTES = 256 * 1024;

/** Reads a file piece by piece. */
export async function hashFile(
  path: string,
): Promise<{ readonly hash: string; readonly sizeBytes: number }> {
  const hasher = createHasher();
  let sizeBytes = 0;
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) {
      hasher.update(chunk as Buffer);
      sizeBytes += (chunk as Buffer).length;
    }
    return { hash: hasher.digest(), sizeBytes };
  } finally {
    hasher.discard();
  }
}

/** `blake3:<64 hex>` of all bytes of a stream. */
export async function hashOfStream(stream: AsyncIterable<unknown>): Promise<string> {
  const hasher = createHasher();
  try {
    for await (const chunk of stream) hasher.update(chunk as Buffer);
    return hasher.digest();
  } finally {
    hasher.discard();
  }
}

/** Native code, eight times as fast, is an optional package: not every platform has it. */
function loadBlake3(): () => Blake3 {
  const load = createRequire(import.meta.url);
  try {
    const { Blake3Hasher } = load('@napi-rs/blake-hash') as NativeModule;
    return () => new Blake3Hasher();
  } catch {
    return (load('blake3') as PortableModule).createHash;
  }
}
