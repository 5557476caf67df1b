import sharp from 'sharp';
import { expect, test } from 'vitest';
import type { ImageValue } from '../../src/nodes/node.ts';
import { encodePng } from '../../src/nodes/codecs/encode-png.ts';
import { toBytes } from '../../src/nodes/tensor.ts';

type Draw = (x: number, y: number, channel: number) => number;

/** The same numbers on every run. */
const grain = (x: number, y: number, channel: number): number =>
  ((x * 73_856_093) ^ (y * 19_349_663) ^ (channel * 83_492_791)) & 7;

const PICTURES: readonly { readonly name: string; readonly draw: Draw }[] = [
  { name: 'a photograph', draw: (x, y, c) => (x + y * 2 + c * 9 + grain(x, y, c)) & 255 },
  { name: 'tiles', draw: (x, y, c) => ((x % 16) * (y % 16) * 7 + c * 50) & 255 },
  { name: 'one colour', draw: () => 77 },
];

const SIZES = [
  { width: 97, height: 61 },
  { width: 1, height: 1 },
  { width: 1, height: 40 },
];

const CASES = PICTURES.flatMap((picture) =>
  SIZES.flatMap((size) => [2, 3, 4].map((channels) => ({ ...picture, ...size, channels }))),
);

test.each(CASES)(
  'a saved PNG of $name, $width × $height in $channels channels, has exactly its pixels',
  async ({ draw, width, height, channels }) => {
    const image = drawn(draw, { width, height, channels });
    const file = await encodePng(image, 0, { compressionLevel: 4, texts: [] });
    expect(await sharp(file).metadata()).toMatchObject({ width, height, channels, depth: 'uchar' });
    const decoded = await sharp(file).ensureAlpha().raw().toBuffer();
    expect(decoded).toEqual(asRgba(toBytes(image, 0), channels));
  },
);

function drawn(
  draw: Draw,
  { width, height, channels }: { width: number; height: number; channels: number },
): ImageValue {
  const data = Float32Array.from({ length: width * height * channels }, (_, i) => {
    const pixel = Math.floor(i / channels);
    return draw(pixel % width, Math.floor(pixel / width), i % channels) / 255;
  });
  return { kind: 'image', batch: 1, width, height, channels, data };
}

/** Grey stands for all three colours, and what has no alpha is opaque. */
function asRgba(bytes: Uint8Array, channels: number): Buffer {
  const places = { 2: [0, 0, 0, 1], 3: [0, 1, 2, 3], 4: [0, 1, 2, 3] }[channels] ?? [];
  const pixels = Array.from({ length: bytes.length / channels }, (_, i) =>
    bytes.subarray(i * channels, (i + 1) * channels),
  );
  return Buffer.from(pixels.flatMap((pixel) => places.map((place) => pixel[place] ?? 255)));
}
