import { crc32 } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/** One chunk of a PNG file, without length and checksum. */
export type PngChunk = { readonly type: string; readonly data: Uint8Array };

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function isPng(bytes: Uint8Array): boolean {
  return bytes.length > SIGNATURE.length && SIGNATURE.equals(bytes.subarray(0, SIGNATURE.length));
}

/**
 * Returns the chunks of a PNG file in order. An incomplete last chunk is returned as far as it
 * goes.
 */
export function readPngChunks(bytes: Uint8Array): PngChunk[] {
  const view = viewOf(bytes);
  const chunks: PngChunk[] = [];
  let at = SIGNATURE.length;
  while (at + 8 <= bytes.length) {
    const end = at + 8 + view.getUint32(at);
    const type = Buffer.from(bytes.subarray(at + 4, at + 8)).toString('latin1');
    chunks.push({ type, data: bytes.subarray(at + 8, end) });
    if (type === 'IEND') break;
    at = end + 4;
  }
  return chunks;
}

/** Writes a PNG file of these chunks, with their checksums. */
export function writePng(chunks: readonly PngChunk[]): Buffer {
  return Buffer.concat([SIGNATURE, ...chunks.flatMap(chunkParts)]);
}

function chunkParts({ type, data }: PngChunk): Uint8Array[] {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(data.length);
  head.write(type, 4, 'latin1');
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(data, crc32(head.subarray(4))));
  return [head, data, tail];
}
