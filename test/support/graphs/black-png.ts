import { deflateSync } from 'node:zlib';
import { type PngChunk, writePng } from '../../../src/nodes/codecs/png-chunks.ts';

/** There is data for so many pixels at most: of a larger picture a decoder finds the rest missing. */
const MOST_PIXELS = 100_000_000;

/** A black PNG of one bit a pixel: small, whatever its size. */
export function blackPng(width: number, height: number, more: readonly PngChunk[] = []): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 1;
  const rows = Math.min(height, 20_000, MOST_PIXELS / width);
  return writePng([
    { type: 'IHDR', data: header },
    ...more,
    { type: 'IDAT', data: deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * rows)) },
    { type: 'IEND', data: Buffer.alloc(0) },
  ]);
}
