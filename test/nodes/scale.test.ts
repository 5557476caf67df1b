import { expect, test } from 'vitest';
import { RESAMPLE_METHODS, upscale } from '../../src/nodes/resample/resample.ts';
import { SCALE_NODES } from '../../src/nodes/image/scale.ts';
import { frameOf } from '../../src/nodes/tensor.ts';
import { nodeNamed, picture, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const node = (name: string) => nodeNamed(SCALE_NODES, name);

const SIZES = [
  { name: 'ImageScale', inputs: { width: 8, height: 0 }, from: '6x4', to: '8x5' },
  { name: 'ImageScale', inputs: { width: 0, height: 1 }, from: '1x9', to: '1x1' },
  { name: 'ImageScale', inputs: { width: 3, height: 2 }, from: '6x4', to: '3x2' },
  { name: 'ImageScaleBy', inputs: { scale_by: 0.5 }, from: '5x7', to: '2x4' },
  { name: 'ImageScaleBy', inputs: { scale_by: 1.1 }, from: '10x20', to: '11x22' },
  {
    name: 'ImageScaleToTotalPixels',
    inputs: { megapixels: 0.01, resolution_steps: 1 },
    from: '64x16',
    to: '205x51',
  },
  {
    name: 'ImageScaleToTotalPixels',
    inputs: { megapixels: 0.01, resolution_steps: 1 },
    from: '13x118',
    to: '34x309',
  },
  { name: 'ImageScaleToMaxDimension', inputs: { largest_size: 30 }, from: '10x20', to: '15x30' },
  { name: 'ImageScaleToMaxDimension', inputs: { largest_size: 30 }, from: '20x5', to: '30x8' },
  { name: 'ImageScaleToMaxDimension', inputs: { largest_size: 30 }, from: '4x4', to: '30x30' },
];

test.each(SIZES)('$name with $inputs makes $from $to', async ({ name, inputs, from, to }) => {
  const [width, height] = from.split('x').map(Number) as [number, number];
  const image = picture({ width, height });
  const given = { image, upscale_method: 'nearest-exact', crop: 'disabled', ...inputs };
  const scaled = await runToImage(node(name), given);
  expect(`${scaled.width}x${scaled.height}`).toBe(to);
  expect(scaled.data).toHaveLength(scaled.width * scaled.height * 3);
});

test('a size that is no number, as of fewer than no pixels, is refused', async () => {
  const image = picture({ width: 3, height: 3 });
  const given = { image, upscale_method: 'bilinear', resolution_steps: 1 };
  const scaled = runToImage(node('ImageScaleToTotalPixels'), { ...given, megapixels: -1 });
  await expect(scaled).rejects.toMatchObject({ exceptionType: 'RuntimeError' });
});

test.each(RESAMPLE_METHODS)('%s leaves a flat picture flat, larger and smaller', (method) => {
  const image = picture({ width: 20, height: 30, level: () => 1 });
  for (const [width, height] of [
    [7, 90],
    [200, 11],
  ] as const) {
    const scaled = upscale(fakeContext({}), image, { width, height, method, crop: 'disabled' });
    expect(Math.max(...scaled.data.map((level) => Math.abs(level - 1)))).toBeLessThan(1e-6);
  }
});

test.each(RESAMPLE_METHODS)('%s scales each picture of a batch as if it were alone', (method) => {
  const batch = picture({ width: 9, height: 8, batch: 3 });
  const options = { width: 13, height: 5, method, crop: 'center' } as const;
  const together = upscale(fakeContext({}), batch, options);
  for (const index of [0, 1, 2]) {
    const single = { ...batch, batch: 1, data: frameOf(batch, index) };
    expect(frameOf(together, index)).toEqual(upscale(fakeContext({}), single, options).data);
  }
});

// Pillow 13 gives these levels.
test.each([
  { from: [2, 5], every: 7, to: [3, 2], rows: [100, 50, 0, 0, 53, 118] },
  {
    from: [9, 9],
    every: 5,
    to: [6, 3],
    rows: [75, 84, 33, 49, 88, 56, 51, 38, 73, 73, 38, 51, 56, 88, 49, 33, 84, 75],
  },
] as const)('lanczos to $to passes over rows and columns in the order of v1', (row) => {
  const [[width, height], [w, h]] = [row.from, row.to];
  const level = (i: number): number => (i % row.every === 0 ? 1 : 0);
  const image = picture({ width, height, channels: 1, level });
  const size = { width: w, height: h };
  const scaled = upscale(fakeContext({}), image, { ...size, method: 'lanczos', crop: 'disabled' });
  expect([...scaled.data].map((value) => Math.round(value * 255))).toEqual(row.rows);
});

test.each([
  ['bilinear', 'RuntimeError'],
  ['lanczos', 'ValueError'],
])('%s to no pixel is a %s', async (upscale_method, exceptionType) => {
  const inputs = { image: picture({ width: 9, height: 9 }), upscale_method, scale_by: 0.01 };
  const scaled = async () => runToImage(node('ImageScaleBy'), inputs);
  await expect(scaled).rejects.toMatchObject({ exceptionType });
});

test('a picture without pixels comes from area, and becomes a black one by lanczos only', async () => {
  const image = picture({ width: 8, height: 9 });
  const thin = { image, width: 1, height: 200, crop: 'center' };
  const scale = (upscale_method: string) =>
    runToImage(node('ImageScale'), { ...thin, upscale_method });
  const empty = await runToImage(node('ImageScaleBy'), {
    image,
    upscale_method: 'area',
    scale_by: 0.01,
  });
  expect([empty.width, empty.height]).toEqual([0, 0]);
  expect(Math.max(...(await scale('lanczos')).data)).toBe(0);
  const refused = async () => scale('area');
  await expect(refused).rejects.toMatchObject({ exceptionType: 'RuntimeError' });
});

test('an unknown method is an error that names it', async () => {
  const inputs = { image: picture({ width: 9, height: 9 }), upscale_method: 'magic', scale_by: 2 };
  await expect(async () => runToImage(node('ImageScaleBy'), inputs)).rejects.toThrow(/magic/);
});
