import { crc32 } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
/** Length and type in front of the data of a chunk, its checksum behind. */
const HEAD_BYTES = 8;
const CRC_BYTES = 4;
/** The specification of PNG allows no longer chunk. */
const MAX_LENGTH = 2 ** 31 - 1;

/** The first offset at which a text chunk can begin: behind the signature and `IHDR`. */
export const FIRST_TEXT_BYTE = SIGNATURE.length + HEAD_BYTES + 13 + CRC_BYTES;

/** Where the text of a `tEXt` chunk lies in its file: `start` inclusive, `end` exclusive. */
export type TextRange = {
  readonly chunkStart: number;
  readonly start: number;
  readonly end: number;
};

/**
 * Finds a `tEXt` chunk by its keyword in the first bytes of a PNG file. A number is the count of
 * first bytes that are needed to continue. `undefined`: not a PNG, no such chunk before the pixels,
 * or a damaged one.
 */
export function findPngText(head: Buffer, keyword: string): TextRange | number | undefined {
  const seen = Math.min(head.length, SIGNATURE.length);
  if (!SIGNATURE.subarray(0, seen).equals(head.subarray(0, seen))) return undefined;
  const key = `${keyword}\0`;
  for (let at = SIGNATURE.length; ;) {
    const dataStart = at + HEAD_BYTES;
    if (head.length < dataStart) return dataStart;
    const length = head.readUInt32BE(at);
    const type = head.toString('latin1', at + 4, dataStart);
    const isFirst = at === SIGNATURE.length;
    if (isFirst !== (type === 'IHDR') || LAST_CHUNKS.has(type) || length > MAX_LENGTH)
      return undefined;
    const dataEnd = dataStart + length;
    const next = dataEnd + CRC_BYTES;
    if (type === 'tEXt' && length >= key.length) {
      const keyEnd = dataStart + key.length;
      if (head.length < keyEnd) return keyEnd;
      if (head.toString('latin1', dataStart, keyEnd) === key) {
        if (head.length < next) return next;
        const isWhole = head.readUInt32BE(dataEnd) === checksum(head, at, dataEnd);
        return isWhole ? { chunkStart: at, start: keyEnd, end: dataEnd } : undefined;
      }
    }
    at = next;
  }
}

const LAST_CHUNKS: ReadonlySet<string> = new Set(['IDAT', 'IEND']);

/** The text of a chunk. */
export function pngTextAt(head: Buffer, { start, end }: TextRange): string {
  return head.toString('latin1', start, end);
}

/** The same bytes with another Latin-1 text of the same length, and the checksum of the chunk that fits it. */
export function withPngText(head: Buffer, range: TextRange, text: string): Buffer {
  const { chunkStart, start, end } = range;
  if (text.length !== end - start) throw new RangeError('a text in a PNG must keep its length');
  const changed = Buffer.from(head);
  changed.write(text, start, 'latin1');
  changed.writeUInt32BE(checksum(changed, chunkStart, end), end);
  return changed;
}

/** The checksum covers type and data, but not the length. */
function checksum(bytes: Buffer, chunkStart: number, dataEnd: number): number {
  return crc32(bytes.subarray(chunkStart + 4, dataEnd));
}
