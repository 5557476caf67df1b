import { describe, expect, test } from 'vitest';
import { COMPOSE_NODES } from '../../src/nodes/image/compose.ts';
import type { ImageValue, Inputs, MaskValue } from '../../src/nodes/node.ts';
import { upscale, fittedMask } from '../../src/nodes/resample/resample.ts';
import { nodeNamed, picture, runNode, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const node = (name: string) => nodeNamed(COMPOSE_NODES, name);

const maskOf = (width: number, height: number, levels: readonly number[]): MaskValue => {
  const batch = levels.length / (width * height);
  return { kind: 'mask', batch, height, width, data: Float32Array.from(levels) };
};

const flat = (level: number, shape: { width?: number; height?: number; batch?: number } = {}) =>
  picture({ width: 1, height: 1, channels: 3, ...shape, level: () => level });

const redLevels = ({ data, channels }: ImageValue): number[] =>
  Array.from(data).filter((_, i) => i % channels === 0);

/** The first channel, as rows of text. */
const redOf = (image: ImageValue): string => {
  const [red, { width }] = [redLevels(image), image];
  return Array.from({ length: red.length / width }, (_, y) =>
    red.slice(y * width, (y + 1) * width).join(' '),
  ).join(' | ');
};

describe('ImageCompositeMasked', () => {
  const laid = (inputs: Inputs): Promise<ImageValue> =>
    runToImage(node('ImageCompositeMasked'), {
      destination: flat(0, { width: 4, height: 2 }),
      source: picture({ width: 2, height: 2, level: (i) => 1 + Math.floor(i / 3) }),
      x: 0,
      y: 0,
      resize_source: false,
      ...inputs,
    });

  test.each([
    { x: 0, y: 0, rows: '1 2 0 0 | 3 4 0 0' },
    { x: 2, y: 1, rows: '0 0 0 0 | 0 0 1 2' },
    { x: 3, y: 0, rows: '0 0 0 1 | 0 0 0 3' },
    { x: 4, y: 0, rows: '0 0 0 0 | 0 0 0 0' },
    { x: 99, y: 99, rows: '0 0 0 0 | 0 0 0 0' },
    { x: -1, y: 0, rows: '2 0 0 0 | 4 0 0 0' },
    { x: 1, y: -1, rows: '0 3 4 0 | 0 0 0 0' },
    { x: -2, y: 0, rows: '0 0 0 0 | 0 0 0 0' },
  ])(
    'at $x, $y shows what of the source lies on the destination: $rows',
    async ({ x, y, rows }) => {
      expect(redOf(await laid({ x, y }))).toBe(rows);
    },
  );

  test('mixes by the mask, which is cut at the edge together with the source', async () => {
    const mask = maskOf(2, 2, [0.5, 0.25, 1, 0]);
    const destination = flat(4, { width: 2, height: 2 });
    expect(redOf(await laid({ destination, mask }))).toBe('2.5 3.5 | 3 4');
    expect(redOf(await laid({ destination, mask, x: 1 }))).toBe('4 2.5 | 4 3');
    expect(redOf(await laid({ destination, mask, x: -1 }))).toBe('3.5 4 | 4 4');
  });

  test('fits a mask of another size to the source, bilinearly', async () => {
    const mask = maskOf(3, 1, [0, 1, 0.5]);
    const size = { width: 5, height: 4, method: 'bilinear', crop: 'disabled' } as const;
    const fitted = fittedMask(fakeContext({}), mask, size, size);
    const layers = { destination: flat(0, size), source: flat(1, size), mask };
    const { data } = await laid(layers);
    expect(data.filter((_, i) => i % 3 === 0)).toEqual(fitted.data);
  });

  test('with resize_source stretches the source over the whole destination', async () => {
    const destination = flat(0, { width: 7, height: 3 });
    const source = picture({ width: 4, height: 5 });
    const size = { width: 7, height: 3, method: 'bilinear', crop: 'disabled' } as const;
    const stretched = upscale(fakeContext({}), source, size);
    expect((await laid({ destination, source, resize_source: true })).data).toEqual(stretched.data);
  });

  test.each([
    { below: 3, above: 2, levels: [1, 2, 1] },
    { below: 1, above: 3, levels: [1] },
    { below: 2, above: 1, levels: [1, 1] },
  ])(
    'lays a batch of $above over a batch of $below as $levels',
    async ({ below, above, levels }) => {
      const destination = flat(0, { batch: below });
      const source = picture({
        width: 1,
        height: 1,
        batch: above,
        level: (i) => 1 + Math.floor(i / 3),
      });
      expect(redLevels(await laid({ destination, source }))).toEqual(levels);
    },
  );

  test('uses the masks of a batch in turn', async () => {
    const destination = flat(0, { batch: 3 });
    const mask = maskOf(1, 1, [0.5, 0.25]);
    const laidOver = await laid({ destination, source: flat(1), mask });
    expect(redLevels(laidOver)).toEqual([0.5, 0.25, 0.5]);
  });

  test('drops the alpha of the source when the destination has none', async () => {
    const source = picture({ width: 1, height: 1, channels: 4, level: (i) => i / 4 });
    const { data } = await laid({ destination: flat(1), source });
    expect([...data]).toEqual([0, 0.25, 0.5]);
  });

  test('replaces the alpha of the destination by that of the source', async () => {
    const destination = picture({ width: 1, height: 1, channels: 4, level: () => 1 });
    const source = picture({ width: 1, height: 1, channels: 4, level: (i) => i / 4 });
    expect([...(await laid({ destination, source })).data]).toEqual([0, 0.25, 0.5, 0.75]);
  });

  test('refuses a source without alpha on a destination with it, as v1 fails there', async () => {
    const destination = picture({ width: 1, height: 1, channels: 4 });
    await expect(laid({ destination })).rejects.toMatchObject({ exceptionType: 'RuntimeError' });
  });

  test('leaves the given destination as it was', async () => {
    const destination = flat(0, { width: 4, height: 2 });
    await laid({ destination });
    expect(Math.max(...destination.data)).toBe(0);
  });
});

describe('JoinImageWithAlpha and SplitImageWithAlpha', () => {
  const join = node('JoinImageWithAlpha');
  const split = node('SplitImageWithAlpha');

  test('alpha is the negative of the mask, both ways', async () => {
    const joined = await runToImage(join, { image: flat(0.5), alpha: maskOf(1, 1, [0.25]) });
    expect([...joined.data]).toEqual([0.5, 0.5, 0.5, 0.75]);
    const [image, mask] = await runNode(split, { image: joined });
    expect([...(image as ImageValue).data]).toEqual([0.5, 0.5, 0.5]);
    expect([...(mask as MaskValue).data]).toEqual([0.25]);
  });

  test('joining replaces an alpha that is there, and as many pictures come out as both have', async () => {
    const image = picture({ width: 1, height: 1, channels: 4, batch: 3, level: () => 0.5 });
    const joined = await runToImage(join, { image, alpha: maskOf(1, 1, [0, 1]) });
    expect(joined).toMatchObject({ batch: 2, channels: 4 });
    expect([joined.data[3], joined.data[7]]).toEqual([1, 0]);
  });

  test('joining fits a mask of another size to the picture, bilinearly', async () => {
    const mask = maskOf(2, 2, [0, 1, 1, 0]);
    const size = { width: 3, height: 5, method: 'bilinear', crop: 'disabled' } as const;
    const fitted = fittedMask(fakeContext({}), mask, size, size);
    const { data } = await runToImage(join, { image: flat(0, size), alpha: mask });
    expect(data.filter((_, i) => i % 4 === 3)).toEqual(fitted.data.map((level) => 1 - level));
  });

  test('splitting a picture without alpha gives an empty mask per picture', async () => {
    const [image, mask] = await runNode(split, { image: flat(0.5, { batch: 2, width: 3 }) });
    expect((image as ImageValue).channels).toBe(3);
    expect(mask).toEqual(maskOf(3, 1, [0, 0, 0, 0, 0, 0]));
  });
});

describe('PorterDuffImageComposite', () => {
  const composed = (inputs: Inputs) =>
    runNode(node('PorterDuffImageComposite'), {
      source: flat(0.75),
      source_alpha: maskOf(1, 1, [0.5]),
      destination: flat(0.5),
      destination_alpha: maskOf(1, 1, [0.75]),
      ...inputs,
    }) as Promise<readonly [ImageValue, MaskValue]>;

  // Source: level 3/4, coverage 1/2, product 3/8. Destination: 1/2, 1/4, 1/8.
  test.each([
    { mode: 'ADD', alpha: 3 / 4, colour: 1 / 2 },
    { mode: 'CLEAR', alpha: 0, colour: 0 },
    { mode: 'DARKEN', alpha: 5 / 8, colour: 9 / 32 + 1 / 16 + 1 / 8 },
    { mode: 'DST', alpha: 1 / 4, colour: 1 / 8 },
    { mode: 'DST_ATOP', alpha: 1 / 2, colour: 1 / 16 + 9 / 32 },
    { mode: 'DST_IN', alpha: 1 / 8, colour: 1 / 16 },
    { mode: 'DST_OUT', alpha: 1 / 8, colour: 1 / 16 },
    { mode: 'DST_OVER', alpha: 5 / 8, colour: 1 / 8 + 9 / 32 },
    { mode: 'LIGHTEN', alpha: 5 / 8, colour: 9 / 32 + 1 / 16 + 3 / 8 },
    { mode: 'MULTIPLY', alpha: 1 / 8, colour: 3 / 64 },
    { mode: 'OVERLAY', alpha: 5 / 8, colour: 1 / 8 + (2 / 8) * (3 / 8) },
    { mode: 'SCREEN', alpha: 5 / 8, colour: 1 / 2 - 3 / 64 },
    { mode: 'SRC', alpha: 1 / 2, colour: 3 / 8 },
    { mode: 'SRC_ATOP', alpha: 1 / 4, colour: 3 / 32 + 1 / 16 },
    { mode: 'SRC_IN', alpha: 1 / 8, colour: 3 / 32 },
    { mode: 'SRC_OUT', alpha: 3 / 8, colour: 9 / 32 },
    { mode: 'SRC_OVER', alpha: 5 / 8, colour: 3 / 8 + 1 / 16 },
    { mode: 'XOR', alpha: 1 / 2, colour: 9 / 32 + 1 / 16 },
  ])('$mode covers $alpha with $colour', async ({ mode, alpha, colour }) => {
    const [image, mask] = await composed({ mode });
    const level = alpha === 0 ? 0 : Math.min(1, Math.fround(colour / alpha));
    expect([...image.data]).toEqual([level, level, level]);
    expect([...mask.data]).toEqual([1 - alpha]);
  });

  test('OVERLAY multiplies where the destination is dark', async () => {
    const [image] = await composed({ mode: 'OVERLAY', destination: flat(0.25) });
    expect(image.data[0]).toBe(Math.fround((2 * (3 / 8) * (1 / 16)) / (5 / 8)));
  });

  test('the shortest batch decides how many pictures come out', async () => {
    const source = flat(0.75, { batch: 3 });
    const masks = maskOf(1, 1, [0, 0]);
    const layers = { source, source_alpha: masks, destination: flat(0, { batch: 4 }) };
    const four = maskOf(1, 1, [0, 0, 0, 0]);
    const [image, mask] = await composed({ ...layers, destination_alpha: four, mode: 'SRC' });
    expect([image.batch, mask.batch]).toEqual([2, 2]);
  });

  test('everything is fitted to the destination picture: bicubic, the middle kept', async () => {
    const source = picture({ width: 9, height: 4 });
    const size = { width: 6, height: 5, method: 'bicubic', crop: 'center' } as const;
    const destination = flat(0, size);
    const [image, mask] = await composed({
      source,
      destination,
      mode: 'SRC',
      source_alpha: maskOf(2, 1, [0, 0]),
    });
    expect([mask.width, mask.height]).toEqual([6, 5]);
    const fitted = upscale(fakeContext({}), source, size);
    expect(image.data).toEqual(fitted.data.map((level) => Math.min(1, Math.max(0, level))));
  });

  test('refuses layers of different channel counts', async () => {
    const source = picture({ width: 1, height: 1, channels: 4 });
    const run = composed({ source, mode: 'SRC' });
    await expect(run).rejects.toMatchObject({ exceptionType: 'AssertionError' });
  });
});
