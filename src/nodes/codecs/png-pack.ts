import { promisify } from 'node:util';
import { constants, deflate, deflateSync } from 'node:zlib';

import { openPixels, layOut } from '../pixels.ts';
import type { PngChunk } from './png-chunks.ts';

/** Pixels as they go into a PNG file, eight bits a channel. */
export type PngPixels = {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: 2 | 3 | 4;
};

/** PNG's number of each layout: grey with alpha, colours, colours with alpha. */
const COLOUR_TYPE = { 2: 4, 3: 2, 4: 6 } as const;

/** PNG's name for rows that hold what is left over the mean of the pixels to the left and above. */
const AVERAGE = 3;

/** Only repeats of the byte before are looked for: a quarter of the work where rows are left-overs. */
const RUNS = { strategy: constants.Z_RLE, memLevel: 9 } as const;

const SAMPLE = { pieces: 8, bytes: 8 * 1024 } as const;

/** The share that a search for repeats must save on the sample to be worth its time. */
const WORTH_SEARCHING = 0.8;

const deflated = promisify(deflate);

/** Header, pixels and end of a photograph-like picture; `undefined` where a search for repeats packs better. */
export async function packPixels(
  pixels: PngPixels,
  compressionLevel: number,
): Promise<PngChunk[] | undefined> {
  const rows = rowsWithVectors(pixels) ?? rowsPlainly(pixels);
  if (repeatsItself(rows, compressionLevel)) return undefined;
  const data = await deflated(rows, { ...RUNS, chunkSize: Math.max(1024, rows.length >> 2) });
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
 * The rows of a picture as they are packed, each behind the number of its filter.
 * @internal
 */
export function rowsWithVectors(pixels: PngPixels): Uint8Array | undefined {
  const { bytes, width, height, channels } = pixels;
  const stride = width * channels;
  const { at, end } = layOut({ row: stride, above: stride, target: stride });
  const room = openPixels(end);
  if (!room) return undefined;
  const rows = new Uint8Array(height * (stride + 1));
  let { row, above } = at;
  for (let y = 0; y < height; y++) {
    const begin = y * (stride + 1);
    room.bytes.set(bytes.subarray(y * stride, (y + 1) * stride), row);
    room.code.averages(row, above, at.target, channels, stride);
    rows[begin] = AVERAGE;
    rows.set(room.bytes.subarray(at.target, at.target + stride), begin + 1);
    [row, above] = [above, row];
  }
  return rows;
}

/**
 * The same where no vector instructions can be had.
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

/** Drawings, texts and tiles do; a few pieces from all over the picture tell. */
function repeatsItself(rows: Uint8Array, level: number): boolean {
  const step = Math.floor(rows.length / SAMPLE.pieces);
  const pieces = Array.from({ length: SAMPLE.pieces }, (_, i) =>
    rows.subarray(i * step, Math.min(i * step + SAMPLE.bytes, (i + 1) * step)),
  );
  const sample = Buffer.concat(pieces);
  const searched = deflateSync(sample, { level }).length;
  return searched < deflateSync(sample, RUNS).length * WORTH_SEARCHING;
}
