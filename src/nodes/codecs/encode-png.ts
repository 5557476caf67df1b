import { promisify } from 'node:util';
import { constants, deflate, deflateSync } from 'node:zlib';
import { pythonJson } from '../../protocol/python-json.ts';
import { type ImageValue, type NodeContext, NodeFailure } from '../node.ts';
import { readPngChunks, textChunk, writePng, type PngChunk } from './png-chunks.ts';
import { toBytes } from '../tensor.ts';
import { openPixels, layOut } from '../pixels.ts';

/** One text in a saved file: the prompt, or an entry of `extra_pnginfo`. */
export type MetadataText = { readonly key: string; readonly text: string };

/** The number of channels that v1 writes for each number of channels of a picture. */
const CHANNELS: { readonly [channels: number]: 2 | 3 | 4 } = { 2: 2, 3: 3, 4: 4 };

/** The chunks that are kept. sharp adds a resolution that v1 does not write. */
const KEPT_CHUNKS: readonly string[] = ['IHDR', 'IDAT', 'IEND'];

/**
 * Returns v1's metadata for every saved file, in its order: the prompt, then each `extra_pnginfo`
 * entry.
 */
export function metadataTexts(
  context: Pick<NodeContext, 'promptText' | 'extraPngInfo'>,
): MetadataText[] {
  const prompt = context.promptText === null ? [] : [{ key: 'prompt', text: context.promptText }];
  const extra = Object.entries(context.extraPngInfo ?? {});
  return [...prompt, ...extra.map(([key, value]) => ({ key, text: pythonJson(value) }))];
}

/** Encodes one picture of a batch as a PNG file, with `tEXt` chunks before the pixels. */
export async function encodePng(
  images: ImageValue,
  index: number,
  options: { readonly compressionLevel: number; readonly texts: readonly MetadataText[] },
): Promise<Buffer> {
  const [header, ...rest] = await encodeChunks(images, index, options.compressionLevel);
  const texts = options.texts.map(({ key, text }) => textChunk('tEXt', latin1Key(key), text));
  return writePng([...(header ? [header] : []), ...texts, ...rest]);
}

/** Returns header, pixels and end of one picture of a batch. */
export async function encodeChunks(
  images: ImageValue,
  index: number,
  compressionLevel: number,
): Promise<PngChunk[]> {
  const { width, height } = images;
  // The message is that of v1's library. Sizes that come through links were not checked before.
  if (width < 1 || height < 1) throw new NodeFailure('ValueError', 'cannot write empty image');
  const raw = { width, height, channels: savedChannels(images) };
  const bytes = toBytes(images, index);
  const packed = await packPixels({ bytes, ...raw }, compressionLevel);
  if (packed) return packed;
  const { default: sharp } = await import('sharp');
  const picture = sharp(bytes, { raw }).toColourspace(raw.channels === 2 ? 'b-w' : 'srgb');
  const png = picture.png({ compressionLevel, adaptiveFiltering: true });
  return readPngChunks(await png.toBuffer()).filter(({ type }) => KEPT_CHUNKS.includes(type));
}

/** Returns the pixel layout for saving. v1 fails on the same layouts. */
export function savedChannels({ channels }: ImageValue): 2 | 3 | 4 {
  const known = CHANNELS[channels];
  if (known !== undefined) return known;
  throw new NodeFailure('TypeError', `Cannot handle this data type: (1, 1, ${channels}), |u1`);
}

/** Returns a keyword of a PNG text chunk. v1 fails on the same keywords. */
export function latin1Key(key: string): string {
  const kept = Buffer.from(key, 'latin1').toString('latin1') === key && !key.includes('\0');
  if (kept) return key;
  throw new NodeFailure(
    'UnicodeEncodeError',
    `extra_pnginfo has a key that a PNG file cannot hold: ${key}`,
  );
}

/** The pixels for a PNG file, with eight bits a channel. */
type PngPixels = {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: 2 | 3 | 4;
};

/** PNG's number of each layout: grey with alpha, colours, colours with alpha. */
const COLOUR_TYPE = { 2: 4, 3: 2, 4: 6 } as const;

/** PNG's filter that stores the difference to the mean of the pixels to the left and above. */
const AVERAGE = 3;

/**
 * Searches only for repeats of the previous byte, which is a quarter of the work for filtered rows.
 */
const RUNS = { strategy: constants.Z_RLE, memLevel: 9 } as const;

const SAMPLE = { pieces: 8, bytes: 8 * 1024 } as const;

/** A smaller picture is packed at once: to choose or start a packer takes longer. */
const SMALL_BYTES = SAMPLE.pieces * SAMPLE.bytes;

/** A search for repeats is used when it packs the sample to less than this share. */
const WORTH_SEARCHING = 0.8;

const deflated = promisify(deflate);

/**
 * Returns header, pixels and end of a small or photograph-like picture. `undefined` when sharp's
 * search for repeats packs better.
 * @internal
 */
export async function packPixels(
  pixels: PngPixels,
  compressionLevel: number,
): Promise<PngChunk[] | undefined> {
  if (pixels.bytes.length <= SMALL_BYTES)
    return chunksOf(pixels, deflateSync(rowsPlainly(pixels), { level: compressionLevel }));
  const rows = rowsWithVectors(pixels) ?? rowsPlainly(pixels);
  if (repeatsItself(rows, compressionLevel)) return undefined;
  const chunkSize = Math.max(1024, rows.length >> 2);
  return chunksOf(pixels, await deflated(rows, { ...RUNS, chunkSize }));
}

function chunksOf(pixels: PngPixels, data: Uint8Array): PngChunk[] {
  return [
    { type: 'IHDR', data: headerOf(pixels) },
    { type: 'IDAT', data },
    { type: 'IEND', data: new Uint8Array() },
  ];
}

function headerOf({ width, height, channels }: PngPixels): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  header[9] = COLOUR_TYPE[channels];
  return header;
}

/**
 * Returns the filtered rows of a picture, each behind the number of its filter.
 * @internal
 */
export function rowsWithVectors(pixels: PngPixels): Uint8Array | undefined {
  const { bytes, width, height, channels } = pixels;
  const stride = width * channels;
  const { at, end } = layOut({ row: stride, above: stride, target: stride });
  const memory = openPixels(end);
  if (!memory) return undefined;
  const rows = new Uint8Array(height * (stride + 1));
  let { row, above } = at;
  for (let y = 0; y < height; y++) {
    const begin = y * (stride + 1);
    memory.bytes.set(bytes.subarray(y * stride, (y + 1) * stride), row);
    memory.code.averages(row, above, at.target, channels, stride);
    rows[begin] = AVERAGE;
    rows.set(memory.bytes.subarray(at.target, at.target + stride), begin + 1);
    [row, above] = [above, row];
  }
  return rows;
}

/**
 * Returns the same rows without vector instructions.
 * @internal
 */
export function rowsPlainly({ bytes, width, height, channels }: PngPixels): Uint8Array {
  const stride = width * channels;
  const rows = new Uint8Array(height * (stride + 1));
  let above: Uint8Array = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const row = bytes.subarray(y * stride, (y + 1) * stride);
    const target = rows.subarray(y * (stride + 1), (y + 1) * (stride + 1));
    target[0] = AVERAGE;
    averageRow(row, above, { target, channels });
    above = row;
  }
  return rows;
}

type RowTarget = { readonly target: Uint8Array; readonly channels: number };

function averageRow(row: Uint8Array, above: Uint8Array, { target, channels }: RowTarget): void {
  for (let i = 0; i < channels; i++) {
    target[i + 1] = (row[i] as number) - ((above[i] as number) >> 1);
  }
  for (let left = 0, i = channels; i < row.length; i++, left++) {
    const mean = ((row[left] as number) + (above[i] as number)) >> 1;
    target[i + 1] = (row[i] as number) - mean;
  }
}

/** True for drawings, texts and tiles: some pieces from all over the picture repeat themselves. */
function repeatsItself(rows: Uint8Array, level: number): boolean {
  const step = Math.floor(rows.length / SAMPLE.pieces);
  const pieces = Array.from({ length: SAMPLE.pieces }, (_, i) =>
    rows.subarray(i * step, Math.min(i * step + SAMPLE.bytes, (i + 1) * step)),
  );
  const sample = Buffer.concat(pieces);
  const searched = deflateSync(sample, { level }).length;
  return searched < deflateSync(sample, RUNS).length * WORTH_SEARCHING;
}
