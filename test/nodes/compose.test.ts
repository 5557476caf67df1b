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
