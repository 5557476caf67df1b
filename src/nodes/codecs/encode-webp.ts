import type { ImageValue } from '../node.ts';
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

/**
 * A placeholder for the time of each frame: sharp accepts 11 to 65,535 ms, but v1's frame rates
 * lead to 1 ms to 100 seconds.
 */
const ENCODED_DELAY_MS = 100;
/**
 * The place of a frame's duration in its chunk: three bytes behind the head and the frame's
 * rectangle.
 */
const DURATION_AT = 8 + 12;

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
  images: ImageValue,
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
  const delay = Array.from({ length: batch }, () => ENCODED_DELAY_MS);
  const { default: sharp } = await import('sharp');
  // sharp accepts no quality of 0, which v1 allows.
  const webp = sharp(pixels, { raw, limitInputPixels: false }).webp({
    lossless,
    quality: Math.max(1, quality),
    effort,
    delay,
    loop: 0,
  });
  if (texts.length === 0) return withDuration(await webp.toBuffer(), durationMs);
  // sharp reserves an Exif chunk. Its content is replaced, since sharp would change the texts.
  const file = await webp.withExif({ IFD0: { Model: 'x' } }).toBuffer();
  return withDuration(replaceExif(file, exifBlock(texts)), durationMs);
}

/** Sets the durations. The encoder joins equal frames: one of them lasts as long as all. */
function withDuration(file: Buffer, durationMs: number): Buffer {
  for (let at = 12; at + 8 <= file.length; at += 8 + padded(file.readUInt32LE(at + 4))) {
    if (file.toString('latin1', at, at + 4) !== 'ANMF') continue;
    const frames = Math.round(file.readUIntLE(at + DURATION_AT, 3) / ENCODED_DELAY_MS);
    file.writeUIntLE(Math.min(frames * durationMs, 0xff_ff_ff), at + DURATION_AT, 3);
  }
  return file;
}

/**
 * Returns an Exif block of ASCII tags, big-endian, written as v1's writer does.
 * @internal
 */
export function exifBlock(texts: readonly MetadataText[]): Buffer {
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
    const inline = data.length <= 4;
    entries.push(exifEntry(tag, data, inline ? undefined : offset));
    if (inline) continue;
    tail.push(data, Buffer.alloc(data.length % 2));
    offset += padded(data.length);
  }
  const noNextDirectory = Buffer.alloc(4);
  return Buffer.concat([EXIF_HEAD, count, ...entries, noNextDirectory, ...tail]);
}

/**
 * Returns a directory entry. A value of up to four bytes is stored in it, a longer one at an
 * offset.
 */
function exifEntry(tag: number, data: Buffer, offset: number | undefined): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES);
  entry.writeUInt16BE(tag);
  entry.writeUInt16BE(ASCII, 2);
  entry.writeUInt32BE(data.length, 4);
  if (offset === undefined) data.copy(entry, 8);
  else entry.writeUInt32BE(offset, 8);
  return entry;
}

function asciiValue(key: string, text: string): Buffer {
  return Buffer.from(`${key}:${text}\0`.replaceAll(/[^\0-\u007f]/g, '?'), 'latin1');
}

/** Replaces the payload of the EXIF chunk of a WEBP file. */
function replaceExif(file: Buffer, exif: Buffer): Buffer {
  const at = findChunk(file, 'EXIF');
  const head = Buffer.alloc(8);
  head.write('EXIF', 'latin1');
  head.writeUInt32LE(exif.length, 4);
  const oldEnd = at + 8 + padded(file.readUInt32LE(at + 4));
  const padding = Buffer.alloc(exif.length % 2);
  const result = Buffer.concat([file.subarray(0, at), head, exif, padding, file.subarray(oldEnd)]);
  result.writeUInt32LE(result.length - 8, 4);
  return result;
}

function findChunk(file: Buffer, type: string): number {
  let at = 12;
  while (file.toString('latin1', at, at + 4) !== type) at += 8 + padded(file.readUInt32LE(at + 4));
  return at;
}

function padded(length: number): number {
  return length + (length % 2);
}
