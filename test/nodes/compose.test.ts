import { describe, expect, test } from 'vitest';
import { COMPOSE_NODES } from '../../src/nodes/image/compose.ts';
import type { Pixels, Inputs } from '../../src/nodes/node.ts';
import { nodeNamed, picture, runToImage } from '../support/graphs/pictures.ts';

const node = (name: string) => nodeNamed(COMPOSE_NODES, name);

const maskOf = (width: number, height: number, levels: readonly number[]): Pixels => {
  const batch = levels.length / (width * height);
  return { kind: 'mask', batch, height, width, channels: 1, data: Float32Array.from(levels) };
};

const flat = (level: number, shape: { width?: number; height?: number; batch?: number } = {}) =>
  picture({ width: 1, height: 1, channels: 3, ...shape, level: () => level });

const redLevels = ({ data, channels }: Pixels): number[] =>
  Array.from(data).filter((_, i) => i % channels === 0);

/** The first channel, as rows of text. */
const redOf = (image: Pixels): string => {
  const [red, { width }] = [redLevels(image), image];
  return Array.from({ length: red.length / width }, (_, y) =>
    red.slice(y * width, (y + 1) * width).join(' '),
  ).join(' | ');
};

describe('ImageCompositeMasked', () => {
  const laid = (inputs: Inputs): Promise<Pixels> =>
    runToImage(node('ImageCompositeMasked'), {
      destination: flat(0, { width: 4, height: 2 }),
      source: picture({ width: 2, height: 2, level: (i) => 1 + Math.floor(i / 3) }),
      x: 0,
      y: 0,
      resize_source: false,
      ...inputs,
    });

  test.each([
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

  test('refuses a source without alpha on a destination with it, as v1 fails there', async () => {
    const destination = picture({ width: 1, height: 1, channels: 4 });
    await expect(laid({ destination })).rejects.toMatchObject({ exceptionType: 'RuntimeError' });
  });
});

test('JoinImageWithAlpha replaces an alpha that is there, and makes as many pictures as both have', async () => {
  const image = picture({ width: 1, height: 1, channels: 4, batch: 3, level: () => 0.5 });
  const joined = await runToImage(node('JoinImageWithAlpha'), {
    image,
    alpha: maskOf(1, 1, [0, 1]),
  });
  expect(joined).toMatchObject({ batch: 2, channels: 4 });
  expect([joined.data[3], joined.data[7]]).toEqual([1, 0]);
});
