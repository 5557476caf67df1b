import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeFile } from '../../src/http/transfer-encoding.ts';

/** As it comes from a socket: cut anywhere. */
function inChunks(text: string, size: number): Readable {
  const bytes = Buffer.from(text, 'latin1');
  const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
  return Readable.from(chunks, { objectMode: false });
}

const WRITERS: readonly [string, (bytes: Buffer) => string][] = [
  ['base64', (bytes) => bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n')],
  [
    'quoted-printable',
    (bytes) =>
      [...bytes]
        .map((byte) => `=${byte.toString(16).toUpperCase().padStart(2, '0')}`)
        .join('')
        .replaceAll(/.{75}/g, '$&=\r\n'),
  ],
  ['7bit', (bytes) => bytes.toString('latin1')],
];

test.each(WRITERS)('%s is decoded wherever it is cut', async (encoding, write) => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 300 }),
      fc.integer({ min: 1, max: 80 }),
      async (array, size) => {
        const bytes = Buffer.from(array);
        const decoded = await buffer(decodeFile(inChunks(write(bytes), size), encoding));
        expect(decoded.equals(bytes)).toBe(true);
      },
    ),
    { numRuns: 50 },
  );
});

test('a stream that fails fails its reader', async () => {
  const stream = new Readable({ read() {} });
  const decoded = buffer(decodeFile(stream, 'base64'));
  stream.push('aGVs');
  stream.destroy(new Error('cut off'));
  await expect(decoded).rejects.toThrow('cut off');
});
