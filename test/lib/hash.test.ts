import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createHash } from 'blake3';
import { afterEach, describe, expect, test } from 'vitest';
import { createHasher, hashOf } from '../../src/lib/hash.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

/** As on a platform without the native package: what asks for it is told that it is not there. */
const NOT_INSTALLED = `
  import Module from 'node:module';
  const resolve = Module._resolveFilename;
  Module._resolveFilename = function (name, ...more) {
    if (!name.startsWith('@napi-rs/blake-hash')) return resolve.call(this, name, ...more);
    throw Object.assign(new Error('not here'), { code: 'MODULE_NOT_FOUND' });
  };`;
const WITHOUT_NATIVE = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(NOT_INSTALLED)}`,
};

/** As the test vectors of BLAKE3 have it: 0, 1, … 250, 0, 1, …. */
function pattern(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i % 251);
}

function inPieces(bytes: Uint8Array, pieceBytes: number): string {
  const hasher = createHasher();
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    hasher.update(bytes.subarray(at, at + pieceBytes));
  }
  return hasher.digest();
}

describe('a hash', () => {
  test.each([
    [0, 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262'],
    [1, '2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213'],
    [1024, '42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7'],
    [102400, 'bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085'],
  ])('of the published vector of %i bytes is as published, however it is cut', (length, hex) => {
    const bytes = pattern(length);
    expect([hashOf(bytes), inPieces(bytes, 700)]).toEqual([`blake3:${hex}`, `blake3:${hex}`]);
  });

  test('is freed once, whether it was finished or not', () => {
    const [done, abandoned] = [createHasher(), createHasher()];
    done.digest();
    for (const hasher of [done, abandoned, abandoned]) expect(() => hasher.discard()).not.toThrow();
  });
});

const SIZES = [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 2049, 65_535, 65_536, 65_537, 5_000_011];
const PIECES = [1, 7, 1000, 1024, 65_536, 99_991, 1_048_576];

describe('native code and WebAssembly', () => {
  test('the native code is installed where these tests run', () => {
    expect(createRequire(import.meta.url)('@napi-rs/blake-hash')).toHaveProperty('Blake3Hasher');
  });

  test.each(SIZES)('agree on %i bytes, in pieces of every size', (length) => {
    const bytes = pattern(length);
    const expected = `blake3:${createHash().update(bytes).digest('hex')}`;
    // A byte at a time takes its time.
    const pieces = PIECES.filter((size) => length / size < 100_000);
    const found = pieces.map((size) => inPieces(bytes, size));
    expect([hashOf(bytes), ...found]).toEqual([expected, ...pieces.map(() => expected)]);
  });
});

describe('a server', () => {
  let holdover: Holdover | undefined;
  afterEach(() => holdover?.dispose());

  async function storedHash(bytes: Uint8Array): Promise<unknown> {
    const form = new FormData();
    form.append('content_type', 'application/octet-stream');
    form.append('file_path', 'a.bin');
    form.append('file', new Blob([new Uint8Array(bytes)]), 'a.bin');
    const answer = await fetch(`${holdover?.url}/api/v2/assets`, { method: 'POST', body: form });
    return ((await answer.json()) as { hash?: unknown }).hash;
  }

  test.each([
    ['with the native code', {}, true],
    ['without it', WITHOUT_NATIVE, false],
  ])('%s stores a file under its hash', async (_which, env, isNative) => {
    holdover = await startHoldover({ env, upstream: 'embedded' });
    const bytes = pattern(3_000_017);
    expect(await storedHash(bytes)).toBe(`blake3:${createHash().update(bytes).digest('hex')}`);
    const loaded = readFileSync(`/proc/${holdover.pid}/maps`, 'utf8');
    expect(/blake-hash[^\n]*\.node/.test(loaded)).toBe(isNative);
  });
});
