import { describe, expect, test } from 'vitest';
import { MASK_NODES } from '../../src/nodes/image/mask.ts';
import { Cancelled } from '../../src/nodes/node.ts';
import type { ImageValue, Inputs, MaskValue } from '../../src/nodes/node.ts';
import { nodeNamed, picture, runNode, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

/** A mask drawn as rows; several pictures of a batch are several lists. */
const maskOf = (...frames: readonly (readonly (readonly number[])[])[]): MaskValue => ({
  kind: 'mask',
  batch: frames.length,
  height: frames[0]?.length ?? 0,
  width: frames[0]?.[0]?.length ?? 0,
  data: Float32Array.from(frames.flat(2)),
});

const run = async (name: string, inputs: Inputs): Promise<MaskValue> =>
  (await runNode(nodeNamed(MASK_NODES, name), inputs))[0] as MaskValue;

const rowsOf = ({ data, width }: MaskValue): string =>
  Array.from({ length: data.length / width }, (_, y) =>
    data.slice(y * width, (y + 1) * width).join(' '),
  ).join(' | ');

const NUMBERED = maskOf([
  [0, 1, 2],
  [3, 4, 5],
]);

describe('between pictures and masks', () => {
  const image = picture({ width: 2, height: 1, batch: 2, channels: 4, level: (i) => i });

  test.each([
    { channel: 'red', rows: '0 4 | 8 12' },
    { channel: 'green', rows: '1 5 | 9 13' },
    { channel: 'blue', rows: '2 6 | 10 14' },
    { channel: 'alpha', rows: '3 7 | 11 15' },
  ])('ImageToMask takes the $channel of every picture: $rows', async ({ channel, rows }) => {
    const mask = await run('ImageToMask', { image, channel });
    expect(mask).toMatchObject({ kind: 'mask', batch: 2, width: 2, height: 1 });
    expect(rowsOf(mask)).toBe(rows);
  });

  test('ImageToMask fails where there is no alpha to take', async () => {
    const opaque = picture({ width: 1, height: 1 });
    const taken = run('ImageToMask', { image: opaque, channel: 'alpha' });
    await expect(taken).rejects.toMatchObject({ exceptionType: 'IndexError' });
  });

  test('MaskToImage is the mask in three channels', async () => {
    const grey = await runToImage(nodeNamed(MASK_NODES, 'MaskToImage'), {
      mask: maskOf([[0.25, 1]], [[2, 3]]),
    });
    expect(grey).toMatchObject({ kind: 'image', batch: 2, width: 2, height: 1, channels: 3 });
    expect([...grey.data]).toEqual([0.25, 0.25, 0.25, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
  });

  const pixel = (...levels: readonly number[]): ImageValue =>
    picture({ width: 1, height: 1, channels: levels.length, level: (i) => levels[i] ?? 0 });

  test.each([
    { levels: [1, 0, 2 / 255], color: 0xff0002, found: 1 },
    { levels: [1, 0, 2 / 255], color: 0x02ff00, found: 0 },
    { levels: [1, 0, 2 / 255, 0.5], color: 0xff0002, found: 1 },
    { levels: [127.6 / 255, 0, 0], color: 0x800000, found: 1 },
    { levels: [0.5, 0, 0], color: 0x800000, found: 1 },
    { levels: [9, -1, 0], color: 0xff0000, found: 1 },
  ])('ImageColorToMask of $levels for $color is $found', async ({ levels, color, found }) => {
    const mask = await run('ImageColorToMask', { image: pixel(...levels), color });
    expect([...mask.data]).toEqual([found]);
  });
});

describe('one level at a time', () => {
  test('SolidMask is one mask of that level', async () => {
    const mask = await run('SolidMask', { value: 0.33, width: 3, height: 2 });
    expect(mask).toEqual(maskOf([...Array(2)].map(() => [0.33, 0.33, 0.33])));
  });

  test('SolidMask without an extent is refused', async () => {
    const made = run('SolidMask', { value: 1, width: 0, height: 2 });
    await expect(made).rejects.toMatchObject({ exceptionType: 'RuntimeError' });
  });

  test('InvertMask turns every level', async () => {
    const inverted = await run('InvertMask', { mask: maskOf([[0, 0.25]], [[1, 0.5]]) });
    expect(inverted).toEqual(maskOf([[1, 0.75]], [[0, 0.5]]));
  });

  test.each([
    { value: 0.5, rows: '0 0 1 1' },
    { value: 1, rows: '0 0 0 0' },
    { value: 0, rows: '1 1 1 1' },
    { value: 0.2, rows: '0 1 1 1' },
  ])(
    'ThresholdMask $value sets what is above it, in single precision: $rows',
    async ({ value, rows }) => {
      const mask = maskOf([[51 / 255, 0.5, 0.75, 1]]);
      expect(rowsOf(await run('ThresholdMask', { mask, value }))).toBe(rows);
    },
  );
});

describe('CropMask', () => {
  test.each([
    { box: { x: 1, y: 0, width: 1, height: 2 }, rows: '1 | 4' },
    { box: { x: 1, y: 1, width: 99, height: 99 }, rows: '4 5' },
    { box: { x: -2, y: 0, width: 1, height: 1 }, rows: '1' },
  ])('$box of 3×2 leaves $rows', async ({ box, rows }) => {
    expect(rowsOf(await run('CropMask', { mask: NUMBERED, ...box }))).toBe(rows);
  });

  test.each([
    { x: 3, y: 0 },
    { x: 0, y: 2 },
  ])('a corner outside at $x, $y leaves nothing and is an error', async ({ x, y }) => {
    const cropped = run('CropMask', { mask: NUMBERED, x, y, width: 5, height: 5 });
    await expect(cropped).rejects.toMatchObject({ exceptionType: 'ValueError' });
  });

  test('cuts every mask of a batch', async () => {
    const mask = maskOf([[1, 2]], [[3, 4]]);
    const cropped = await run('CropMask', { mask, x: 1, y: 0, width: 1, height: 1 });
    expect(cropped).toEqual(maskOf([[2]], [[4]]));
  });
});

describe('MaskComposite', () => {
  const laid = (inputs: Inputs) => run('MaskComposite', { x: 0, y: 0, ...inputs });

  test.each([
    { operation: 'multiply', rows: '0.375 0.1875' },
    { operation: 'add', rows: '1 1' },
    { operation: 'subtract', rows: '0.25 0' },
    { operation: 'and', rows: '0 0' },
    { operation: 'or', rows: '1 1' },
    { operation: 'xor', rows: '1 1' },
  ])('$operation of 0.75 0.25 and 0.5 0.75: $rows', async ({ operation, rows }) => {
    const [destination, source] = [maskOf([[0.75, 0.25]]), maskOf([[0.5, 0.75]])];
    expect(rowsOf(await laid({ destination, source, operation }))).toBe(rows);
  });

  test.each([
    { operation: 'and', rows: '1 0 0 0' },
    { operation: 'or', rows: '1 1 1 0' },
    { operation: 'xor', rows: '0 1 1 0' },
  ])('$operation rounds half down: $rows', async ({ operation, rows }) => {
    const destination = maskOf([[0.51, 0.51, 0.5, 0.5]]);
    const source = maskOf([[1, 0.5, 0.6, 0.2]]);
    expect(rowsOf(await laid({ destination, source, operation }))).toBe(rows);
  });

  test.each([
    { x: 0, y: 0, rows: '1 1 0 | 1 1 0' },
    { x: 2, y: 1, rows: '0 0 0 | 0 0 1' },
    { x: 3, y: 0, rows: '0 0 0 | 0 0 0' },
    { x: 99, y: 99, rows: '0 0 0 | 0 0 0' },
    { x: -1, y: -1, rows: '1 0 0 | 0 0 0' },
  ])('at $x, $y: $rows', async ({ x, y, rows }) => {
    const [empty, full] = [Array(3).fill(0), Array(2).fill(1)] as [number[], number[]];
    const layers = { destination: maskOf([empty, empty]), source: maskOf([full, full]) };
    expect(rowsOf(await laid({ ...layers, x, y, operation: 'add' }))).toBe(rows);
  });

  test('clips also what nothing was laid over', async () => {
    const layers = { destination: maskOf([[7, -7, 0.5]]), source: maskOf([[0]]) };
    expect(rowsOf(await laid({ ...layers, x: 2, operation: 'add' }))).toBe('1 0 0.5');
  });

  test('lays one mask over every mask of a batch, or each over its own', async () => {
    const destination = maskOf([[0.25]], [[0.5]]);
    const one = await laid({ destination, source: maskOf([[0.25]]), operation: 'add' });
    expect(one).toEqual(maskOf([[0.5]], [[0.75]]));
    const source = maskOf([[0.25]], [[0]]);
    expect(await laid({ destination, source, operation: 'add' })).toEqual(maskOf([[0.5]], [[0.5]]));
  });

  test('refuses batches that do not fit', async () => {
    const layers = { destination: maskOf([[0]]), source: maskOf([[0]], [[1]]) };
    await expect(laid({ ...layers, operation: 'or' })).rejects.toMatchObject({
      exceptionType: 'RuntimeError',
    });
  });
});

describe('FeatherMask', () => {
  const NONE = { left: 0, top: 0, right: 0, bottom: 0 };
  const square = maskOf(Array.from({ length: 4 }, () => [1, 1, 1, 1]));

  test.each([
    { edges: { left: 2 }, row: '0.5 1 1 1' },
    { edges: { left: 4 }, row: '0.25 0.5 0.75 1' },
    { edges: { left: 500 }, row: '0.25 0.5 0.75 1' },
    { edges: { right: 1 }, row: '1 1 1 1' },
    { edges: { right: 2 }, row: '0.5 1 1 1' },
    { edges: { right: 4 }, row: '0.25 1 0.75 0.5' },
    { edges: { left: 4, right: 4 }, row: '0.0625 0.5 0.5625 0.5' },
    { edges: NONE, row: '1 1 1 1' },
  ])('$edges makes rows $row; top and bottom do the same to columns', async ({ edges, row }) => {
    const { left, right } = { ...NONE, ...edges };
    const across = await run('FeatherMask', { ...NONE, mask: square, left, right });
    expect(rowsOf(across)).toBe([row, row, row, row].join(' | '));
    const down = await run('FeatherMask', { ...NONE, mask: square, top: left, bottom: right });
    expect(rowsOf(down)).toBe(
      row
        .split(' ')
        .map((level) => Array(4).fill(level).join(' '))
        .join(' | '),
    );
  });

  test('weakens the levels that are there, in every mask of a batch', async () => {
    const mask = maskOf([[0.5, 0.5]], [[0.25, 1]]);
    const feathered = await run('FeatherMask', { ...NONE, mask, left: 2 });
    expect(feathered).toEqual(maskOf([[0.25, 0.5]], [[0.125, 1]]));
  });
});

describe('GrowMask', () => {
  const dot = (size: number, level = 1): MaskValue => {
    const middle = (size * size - 1) / 2;
    const data = Float32Array.from({ length: size * size }, (_, i) => (i === middle ? level : 0));
    return { kind: 'mask', batch: 1, width: size, height: size, data };
  };

  test.each([
    { expand: 0, tapered_corners: true, rows: '0 0 0 | 0 1 0 | 0 0 0' },
    { expand: 1, tapered_corners: true, rows: '0 1 0 | 1 1 1 | 0 1 0' },
    { expand: 1, tapered_corners: false, rows: '1 1 1 | 1 1 1 | 1 1 1' },
    { expand: 2, tapered_corners: true, rows: '1 1 1 | 1 1 1 | 1 1 1' },
    { expand: 16384, tapered_corners: true, rows: '1 1 1 | 1 1 1 | 1 1 1' },
    { expand: -1, tapered_corners: true, rows: '0 0 0 | 0 0 0 | 0 0 0' },
  ])('by $expand, tapered $tapered_corners: $rows', async ({ expand, tapered_corners, rows }) => {
    const grown = await run('GrowMask', { mask: dot(3), expand, tapered_corners });
    expect(rowsOf(grown)).toBe(rows);
  });

  test('tapered corners make a diamond of a dot', async () => {
    const grown = await run('GrowMask', { mask: dot(7), expand: 2, tapered_corners: true });
    const width = (y: number): number => grown.data.slice(y * 7, y * 7 + 7).filter(Boolean).length;
    expect([0, 1, 2, 3, 4, 5, 6].map(width)).toEqual([0, 1, 3, 5, 3, 1, 0]);
  });

  test('narrowing takes the lowest neighbour, and the border of the mask is no hole', async () => {
    const mask = maskOf([[0.5, 1, 1, 1, 1]]);
    const narrowed = await run('GrowMask', { mask, expand: -2, tapered_corners: false });
    expect(rowsOf(narrowed)).toBe('0.5 0.5 0.5 1 1');
  });

  test('grows every mask of a batch alone and leaves the given one as it was', async () => {
    const mask = maskOf([[0.25, 0, 0]], [[0, 0, 0.5]]);
    const grown = await run('GrowMask', { mask, expand: 1, tapered_corners: true });
    expect(grown).toEqual(maskOf([[0.25, 0.25, 0]], [[0, 0.5, 0.5]]));
    expect(mask).toEqual(maskOf([[0.25, 0, 0]], [[0, 0, 0.5]]));
  });
});

const MASK = { mask: NUMBERED };

test.each([
  { name: 'InvertMask', inputs: MASK },
  { name: 'ThresholdMask', inputs: { ...MASK, value: 0.5 } },
  { name: 'CropMask', inputs: { ...MASK, x: 0, y: 0, width: 1, height: 1 } },
  { name: 'FeatherMask', inputs: { ...MASK, left: 1, top: 0, right: 0, bottom: 0 } },
  { name: 'GrowMask', inputs: { ...MASK, expand: 1, tapered_corners: true } },
  { name: 'MaskToImage', inputs: MASK },
])('$name stops when the job is cancelled', async ({ name, inputs }) => {
  const check = (): never => {
    throw new Cancelled();
  };
  const started = async () =>
    runNode(nodeNamed(MASK_NODES, name), inputs, { ...fakeContext({}), check });
  await expect(started).rejects.toThrow(Cancelled);
});
