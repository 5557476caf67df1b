import { loadSharp } from '../load-sharp.ts';
import type { Pixels } from '../node.ts';
import { savedChannels, type MetadataText } from './encode-png.ts';
import { toBytes } from '../tensor.ts';

/**
 * The first Exif tag that v1 uses for its texts: the prompt is Model, the others go from Make
 * downwards.
 */
const FIRST_TAG = 0x0110;

/** The type number of an ASCII value in an Exif directory. */
const ASCII = 2;

const ENTRY_BYTES = 12;

/** The directory holds shorter values itself. */
const MIN_VALUE_BYTES = 5;

/** sharp writes no other times than these, while v1's frame rates lead to 1 ms to 100 seconds. */
const FRAME_MS = { min: 11, max: 65_535 } as const;

/**
 * The header before the directory: a marker, then byte order, magic number and offset. Offsets
 * count from the byte order.
 */
const EXIF_HEAD = Buffer.from('457869660000' + '4d4d002a00000008', 'hex');
const TIFF_HEAD_BYTES = 8;

/**
 * Encodes an animated WEBP that repeats for ever. Its texts are in Exif tags, as v1 writes them.
 */
export async function encodeWebp(
  images: Pixels,
  options: {
    readonly durationMs: number;
    readonly lossless: boolean;
    readonly quality: number;
    readonly effort: number;
    readonly texts: readonly MetadataText[];
  },
): Promise<Buffer> {
  const { width, height, batch } = images;
  const { durationMs, lossless, quality, effort, texts } = options;
  const pixels = Buffer.concat(Array.from({ length: batch }, (_, i) => toBytes(images, i)));
  const raw = {
    width,
    height: height * batch,
    channels: savedChannels(images),
    pageHeight: height,
  };
  const frameMs = Math.min(FRAME_MS.max, Math.max(FRAME_MS.min, durationMs));
  const sharp = loadSharp();
  // sharp accepts no quality of 0, which v1 allows.
  const webp = sharp(pixels, { raw, limitInputPixels: false }).webp({
    lossless,
    quality: Math.max(1, quality),
    effort,
    delay: Array.from({ length: batch }, () => frameMs),
    loop: 0,
  });
  if (texts.length === 0) return await webp.toBuffer();
  // sharp writes an Exif chunk, but loses texts of more than 64 KB.
  const file = await webp.withExif({ IFD0: { Model: 'x' } }).toBuffer();
  return replaceExif(file, exifBlock(texts));
}

/** Returns an Exif block of ASCII tags, big-endian. */
function exifBlock(texts: readonly MetadataText[]): Buffer {
  const values = texts.map(({ key, text }, i) => ({
    tag: FIRST_TAG - i,
    data: asciiValue(key, text),
  }));
  values.sort((a, b) => a.tag - b.tag);
  const count = Buffer.alloc(2);
  count.writeUInt16BE(values.length);
  const entries: Buffer[] = [];
  const tail: Buffer[] = [];
  let offset = TIFF_HEAD_BYTES + 2 + values.length * ENTRY_BYTES + 4;
  for (const { tag, data } of values) {
    const entry = Buffer.alloc(ENTRY_BYTES);
    entry.writeUInt16BE(tag);
    entry.writeUInt16BE(ASCII, 2);
    entry.writeUInt32BE(data.length, 4);
    entry.writeUInt32BE(offset, 8);
    entries.push(entry);
    tail.push(data, padding(data));
    offset += data.length + padding(data).length;
  }
  const noNextDirectory = Buffer.alloc(4);
  return Buffer.concat([EXIF_HEAD, count, ...entries, noNextDirectory, ...tail]);
}

function asciiValue(key: string, text: string): Buffer {
  const ascii = `${key}:${text}\0`.replaceAll(/[^\0-\u007f]/g, '?');
  return Buffer.from(ascii.padEnd(MIN_VALUE_BYTES, '\0'), 'latin1');
}

/** Replaces the payload of the EXIF chunk, which is the last one of the file. */
function replaceExif(file: Buffer, exif: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write('EXIF', 'latin1');
  head.writeUInt32LE(exif.length, 4);
  const before = file.subarray(0, file.lastIndexOf('EXIF'));
  const result = Buffer.concat([before, head, exif, padding(exif)]);
  result.writeUInt32LE(result.length - 8, 4);
  return result;
}

/** Values and chunks begin at even places. */
function padding(data: Buffer): Buffer {
  return Buffer.alloc(data.length % 2);
}
