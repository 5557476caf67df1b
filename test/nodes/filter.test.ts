import { expect, test } from 'vitest';
import { FILTER_NODES } from '../../src/nodes/filters/filter-nodes.ts';
import { nodeNamed, picture, runToImage } from '../support/graphs/pictures.ts';

const node = (name: string) => nodeNamed(FILTER_NODES, name);

test('ImageInvert turns alpha like any other channel', async () => {
  const image = picture({
    width: 1,
    height: 1,
    channels: 4,
    level: (i) => [0, 1, 0.25, 1][i] ?? 0,
  });
  const inverted = await runToImage(node('ImageInvert'), { image });
  expect([...inverted.data]).toEqual([1, 0, 0.75, 0]);
});

test('ImageBlend uses a single picture for every picture of a batch, on either side', async () => {
  const one = picture({ width: 2, height: 2, level: () => 1 });
  const many = picture({ width: 2, height: 2, batch: 3 });
  const settings = { blend_factor: 0, blend_mode: 'normal' };
  const first = await runToImage(node('ImageBlend'), { image1: many, image2: one, ...settings });
  expect(first.data).toEqual(many.data);
  const second = await runToImage(node('ImageBlend'), { image1: one, image2: many, ...settings });
  expect(second).toMatchObject({ batch: 3 });
});

test('ImageBlend drops the alpha of the second picture when the first has none', async () => {
  const image1 = picture({ width: 2, height: 2 });
  const image2 = picture({ width: 2, height: 2, channels: 4, level: (i) => (i % 4) / 4 });
  const inputs = { image1, image2, blend_factor: 1, blend_mode: 'normal' };
  const blended = await runToImage(node('ImageBlend'), inputs);
  expect(Array.from(blended.data.subarray(0, 6))).toEqual([0, 0.25, 0.5, 0, 0.25, 0.5]);
});

test.each([
  { what: 'batches of 2 and 3', first: { batch: 2 }, second: { batch: 3 } },
  { what: 'alpha only in the first', first: { channels: 4 }, second: { channels: 3 } },
])('ImageBlend refuses $what as v1 does', async ({ first, second }) => {
  const image1 = picture({ width: 2, height: 2, ...first });
  const image2 = picture({ width: 2, height: 2, ...second });
  const inputs = { image1, image2, blend_factor: 0.5, blend_mode: 'normal' };
  await expect(async () => runToImage(node('ImageBlend'), inputs)).rejects.toMatchObject({
    exceptionType: 'RuntimeError',
  });
});

test.each([4, 1e8])('ImageBlur refuses a radius of %s for a small picture', async (radius) => {
  const inputs = { image: picture({ width: 9, height: 4 }), blur_radius: radius, sigma: 1 };
  const words = new RegExp(`radius of ${radius} .* 9 × 4`);
  await expect(async () => runToImage(node('ImageBlur'), inputs)).rejects.toThrow(words);
});

test.each([
  { radius: 1, sigma: 0.1, alpha: 0 },
  { radius: 31, sigma: 10, alpha: 0 },
  { radius: 9, sigma: 0.3, alpha: 0.1 },
  { radius: 20, sigma: 1, alpha: 5 },
])('white stays white with $radius, $sigma, $alpha', async ({ radius, sigma, alpha }) => {
  const image = picture({ width: 40, height: 35, level: () => 1 });
  const settings = { image, blur_radius: radius, sharpen_radius: radius, sigma, alpha };
  const name = alpha === 0 ? 'ImageBlur' : 'ImageSharpen';
  const { data } = await runToImage(node(name), settings);
  expect(new Set(data)).toEqual(new Set([1]));
});
