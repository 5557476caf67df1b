import { describe, expect, test } from 'vitest';
import { MASK_NODES } from '../../src/nodes/image/mask.ts';
import type { Pixels, Inputs } from '../../src/nodes/node.ts';
import { nodeNamed, picture, rowsOf, runNode } from '../support/graphs/pictures.ts';

/** A mask drawn as rows; several pictures of a batch are several lists. */
const maskOf = (...frames: readonly (readonly (readonly number[])[])[]): Pixels => ({
  kind: 'mask',
  channels: 1,
  batch: frames.length,
  height: frames[0]?.length ?? 0,
  width: frames[0]?.[0]?.length ?? 0,
  data: Float32Array.from(frames.flat(2)),
});

const run = async (name: string, inputs: Inputs): Promise<Pixels> =>
  (await runNode(nodeNamed(MASK_NODES, name), inputs))[0] as Pixels;

const NUMBERED = maskOf([
  [0, 1, 2],
  [3, 4, 5],
]);

describe('between pictures and masks', () => {
  test('ImageToMask fails where there is no alpha to take', async () => {
    const opaque = picture({ width: 1, height: 1 });
    const taken = run('ImageToMask', { image: opaque, channel: 'alpha' });
    await expect(taken).rejects.toMatchObject({ exceptionType: 'IndexError' });
  });

  const pixel = (...levels: readonly number[]): Pixels =>
    picture({ width: 1, height: 1, channels: levels.length, level: (i) => levels[i] ?? 0 });

  test.each([
    { levels: [1, 0, 2 / 255], color: 0xff0002, found: 1 },
    { levels: [1, 0, 2 / 255, 0.5], color: 0xff0002, found: 1 },
    { levels: [127.6 / 255, 0, 0], color: 0x800000, found: 1 },
    { levels: [9, -1, 0], color: 0xff0000, found: 1 },
  ])('ImageColorToMask of $levels for $color is $found', async ({ levels, color, found }) => {
    const mask = await run('ImageColorToMask', { image: pixel(...levels), color });
    expect([...mask.data]).toEqual([found]);
  });
});

describe('one level at a time', () => {
  test('SolidMask without an extent is refused', async () => {
    const made = run('SolidMask', { value: 1, width: 0, height: 2 });
    await expect(made).rejects.toMatchObject({ exceptionType: 'RuntimeError' });
  });

  test('ThresholdMask compares in single precision', async () => {
    const mask = maskOf([[51 / 255, 0.5]]);
    expect(rowsOf(await run('ThresholdMask', { mask, value: 0.2 }))).toBe('0 1');
  });
});

describe('CropMask', () => {
  test.each([
    { x: 3, y: 0 },
    { x: 0, y: 2 },
  ])('a corner outside at $x, $y leaves nothing, which is no picture', async ({ x, y }) => {
    const mask = await run('CropMask', { mask: NUMBERED, x, y, width: 5, height: 5 });
    expect(mask.data).toHaveLength(0);
    await expect(run('MaskToImage', { mask })).rejects.toMatchObject({
      exceptionType: 'RuntimeError',
    });
  });
});

describe('MaskComposite', () => {
  const laid = (inputs: Inputs) => run('MaskComposite', { x: 0, y: 0, ...inputs });

  test('subtract ends at 0', async () => {
    const [destination, source] = [maskOf([[0.75, 0.25]]), maskOf([[0.5, 0.75]])];
    expect(rowsOf(await laid({ destination, source, operation: 'subtract' }))).toBe('0.25 0');
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
    { x: 99, y: 99, rows: '0 0 0 | 0 0 0' },
    { x: -1, y: -1, rows: '1 0 0 | 0 0 0' },
  ])('at $x, $y: $rows', async ({ x, y, rows }) => {
    const [empty, full] = [Array(3).fill(0), Array(2).fill(1)] as [number[], number[]];
    const layers = { destination: maskOf([empty, empty]), source: maskOf([full, full]) };
    expect(rowsOf(await laid({ ...layers, x, y, operation: 'add' }))).toBe(rows);
  });

  test.each([
    ['x', 3, 'fails'],
    ['x', 4, 'works'],
    ['y', 2, 'fails'],
  ])('beyond the edge, at %s %i, it %s', async (side, at, how) => {
    const [row, three] = [[0, 0], Array(3).fill([1, 1, 1]) as number[][]];
    const layers = { destination: maskOf([row]), source: maskOf(three), operation: 'add' };
    const result = laid({ ...layers, [side]: at }).then(
      () => 'works',
      () => 'fails',
    );
    expect(await result).toBe(how);
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
    { edges: { left: 4 }, row: '0.25 0.5 0.75 1' },
    { edges: { right: 4 }, row: '1 0.75 0.5 0.25' },
    { edges: { left: 4, right: 4 }, row: '0.25 0.375 0.375 0.25' },
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
});

describe('GrowMask', () => {
  test('grows every mask of a batch alone and leaves the given one as it was', async () => {
    const mask = maskOf([[0.25, 0, 0]], [[0, 0, 0.5]]);
    const grown = await run('GrowMask', { mask, expand: 1, tapered_corners: true });
    expect(grown).toEqual(maskOf([[0.25, 0.25, 0]], [[0, 0.5, 0.5]]));
    expect(mask).toEqual(maskOf([[0.25, 0, 0]], [[0, 0, 0.5]]));
  });
});
