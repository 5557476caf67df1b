import { expect, test } from 'vitest';
import { Cancelled, NodeFailure, OutOfMemory } from '../../src/nodes/node.ts';
import type { ImageValue, Inputs, MaskValue } from '../../src/nodes/node.ts';
import { upscale } from '../../src/nodes/resample/resample.ts';
import { TRANSFORM_NODES } from '../../src/nodes/image/transform.ts';
import { nodeNamed, picture, runNode, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const node = (name: string) => nodeNamed(TRANSFORM_NODES, name);

/** A picture whose pixels are numbered row by row, so that one can see where each went. */
const numbered = (width: number, height: number, batch = 1): ImageValue =>
  picture({ width, height, batch, channels: 1, level: (i) => i });

/** The levels of a one-channel picture as rows of text. */
const rowsOf = ({ data, width }: ImageValue | MaskValue): string =>
  Array.from({ length: data.length / width }, (_, y) =>
    data.slice(y * width, (y + 1) * width).join(' '),
  ).join(' | ');

test.each([
  { box: { x: 1, y: 0, width: 2, height: 2 }, rows: '1 2 | 5 6' },
  { box: { x: 2, y: 1, width: 9, height: 9 }, rows: '6 7 | 10 11' },
  { box: { x: 99, y: 99, width: 3, height: 3 }, rows: '11' },
  { box: { x: 4, y: 0, width: 1, height: 1 }, rows: '3' },
  { box: { x: -2, y: -3, width: 2, height: 1 }, rows: '' },
  { box: { x: -3, y: -2, width: 2, height: 1 }, rows: '5 6' },
])('ImageCrop $box of 4×3 pixels leaves $rows', async ({ box, rows }) => {
  const cropped = await runNode(node('ImageCrop'), { image: numbered(4, 3), ...box }).then(
    ([image]) => rowsOf(image as ImageValue),
    (error: NodeFailure) => (error.exceptionType === 'ValueError' ? '' : error.message),
  );
  expect(cropped).toBe(rows);
});

test.each([
  { name: 'ImageFlip', word: { flip_method: 'x-axis: vertically' }, rows: '3 4 5 | 0 1 2' },
  { name: 'ImageFlip', word: { flip_method: 'y-axis: horizontally' }, rows: '2 1 0 | 5 4 3' },
  { name: 'ImageRotate', word: { rotation: 'none' }, rows: '0 1 2 | 3 4 5' },
  { name: 'ImageRotate', word: { rotation: '90 degrees' }, rows: '3 0 | 4 1 | 5 2' },
  { name: 'ImageRotate', word: { rotation: '180 degrees' }, rows: '5 4 3 | 2 1 0' },
  { name: 'ImageRotate', word: { rotation: '270 degrees' }, rows: '2 5 | 1 4 | 0 3' },
])('$name $word turns "0 1 2 | 3 4 5" into "$rows"', async ({ name, word, rows }) => {
  expect(rowsOf(await runToImage(node(name), { image: numbered(3, 2), ...word }))).toBe(rows);
});

test.each(['90 degrees', '180 degrees', '270 degrees'])(
  'ImageRotate by %s turns each picture of a batch by itself and keeps channels together',
  async (rotation) => {
    const image = picture({ width: 3, height: 2, batch: 2, channels: 4 });
    const [half, pixels] = [image.data.length / 2, 6];
    const turned = await runToImage(node('ImageRotate'), { image, rotation });
    const single = { ...image, batch: 1, data: image.data.slice(half) };
    const second = await runToImage(node('ImageRotate'), { image: single, rotation });
    expect(turned.data.slice(half)).toEqual(second.data);
    const colours = (data: Float32Array): string[] =>
      Array.from({ length: pixels }, (_, i) => data.slice(i * 4, i * 4 + 4).join(' ')).sort();
    expect(colours(turned.data)).toEqual(colours(image.data.slice(0, half)));
  },
);

const padded = async (image: ImageValue, inputs: Inputs): Promise<[ImageValue, MaskValue]> => {
  const none = { left: 0, top: 0, right: 0, bottom: 0, feathering: 0 };
  const outputs = await runNode(node('ImagePadForOutpaint'), { ...none, image, ...inputs });
  return outputs as [ImageValue, MaskValue];
};

test('ImagePadForOutpaint puts every picture on grey, and marks the margins in one mask', async () => {
  const [image, mask] = await padded(numbered(2, 1, 2), { left: 1, bottom: 1 });
  expect(rowsOf(image)).toBe('0.5 0 1 | 0.5 0.5 0.5 | 0.5 2 3 | 0.5 0.5 0.5');
  expect(mask).toMatchObject({ batch: 1, width: 3, height: 2 });
  expect(rowsOf(mask)).toBe('1 0 0 | 1 1 1');
});

test.each([
  { edge: 'left', row: '1 0.25 0 0 0' },
  { edge: 'right', row: '0 0 0 0 0.25' },
  { edge: 'top', row: '1 1 1 1 1' },
  { edge: 'bottom', row: '0 0 0 0 0' },
])(
  'ImagePadForOutpaint feathers inside the $edge edge, quadratically, and no other',
  async ({ edge, row }) => {
    const inputs = { [edge]: 8, feathering: 2 };
    const [, mask] = await padded(numbered(5, 5), inputs);
    const [x, y] = [edge === 'left' ? 8 : 0, edge === 'top' ? 8 : 0];
    const first = y * mask.width + x;
    expect(mask.data.slice(first, first + 5).join(' ')).toBe(row);
  },
);

test.each([
  { feathering: 3, sides: [6, 9], feathered: false },
  { feathering: 3, sides: [9, 6], feathered: false },
  { feathering: 3, sides: [7, 7], feathered: true },
  { feathering: -1, sides: [9, 9], feathered: false },
])(
  'ImagePadForOutpaint: feathering $feathering in a picture of $sides applies: $feathered',
  async ({ feathering, sides: [width = 0, height = 0], feathered }) => {
    const [, mask] = await padded(numbered(width, height), { left: 1, feathering });
    expect(mask.data[1] === 1).toBe(feathered);
  },
);

test('ImagePadForOutpaint refuses margins below 0', async () => {
  await expect(padded(numbered(4, 4), { left: -1 })).rejects.toThrow('cannot be below 0');
});

test.each([
  { padding_color: 'white', rows: '1 1 1 1 | 5 5 6 6 | 7 7 8 8 | 1 1 1 1 | 1 1 1 1' },
  { padding_color: 'black', rows: '0 0 0 0 | 5 5 6 6 | 7 7 8 8 | 0 0 0 0 | 0 0 0 0' },
])(
  'ResizeAndPadImage centres on $padding_color, the odd row below',
  async ({ padding_color, rows }) => {
    const image = picture({
      width: 4,
      height: 2,
      channels: 1,
      level: (i) => 5 + Math.floor(i / 2),
    });
    const sides = { target_width: 4, target_height: 5, interpolation: 'nearest-exact' };
    const inputs = { image, padding_color, ...sides };
    expect(rowsOf(await runToImage(node('ResizeAndPadImage'), inputs))).toBe(rows);
  },
);

test('ResizeAndPadImage fails when the picture is too thin to leave a pixel', async () => {
  const sides = { target_width: 10, target_height: 10, interpolation: 'area' };
  const inputs = { image: numbered(1, 1000), padding_color: 'white', ...sides };
  await expect(async () => runToImage(node('ResizeAndPadImage'), inputs)).rejects.toThrow('0 × 10');
});

const stitched = (inputs: Inputs): Promise<ImageValue> =>
  runToImage(node('ImageStitch'), {
    image1: numbered(2, 1),
    image2: picture({ width: 1, height: 1, channels: 1, level: () => 9 }),
    direction: 'right',
    match_image_size: false,
    spacing_width: 0,
    spacing_color: 'white',
    ...inputs,
  });

test.each([
  { direction: 'right', rows: '0 1 9' },
  { direction: 'left', rows: '9 0 1' },
  { direction: 'down', rows: '0 1 | 9 1' },
  { direction: 'up', rows: '9 1 | 0 1' },
])('ImageStitch to the $direction, white borders: $rows', async ({ direction, rows }) => {
  expect(rowsOf(await stitched({ direction }))).toBe(rows);
});

test.each([
  { spacing_color: 'white', border: 1 },
  { spacing_color: 'black', border: 0 },
  { spacing_color: 'red', border: 0 },
  { spacing_color: 'green', border: 0 },
])(
  'ImageStitch with $spacing_color puts the smaller picture between borders of $border',
  async ({ spacing_color, border }) => {
    const image2 = picture({ width: 1, height: 4, channels: 1, level: () => 9 });
    const tall = await stitched({ image2, spacing_color });
    expect(rowsOf(tall)).toBe(
      `${border} ${border} 9 | 0 1 9 | ${border} ${border} 9 | ${border} ${border} 9`,
    );
  },
);

test.each([
  { spacing_width: 1, width: 5 },
  { spacing_width: 2, width: 5 },
  { spacing_width: 3, width: 7 },
])('ImageStitch makes a gap of $spacing_width even', async ({ spacing_width, width }) => {
  expect((await stitched({ spacing_width })).width).toBe(width);
});

test('ImageStitch fills the gap with the colour, opaque, and missing alpha with 1', async () => {
  const image1 = picture({ width: 1, height: 1, channels: 3, level: () => 0.25 });
  const image2 = picture({ width: 1, height: 1, channels: 4, level: () => 0.5 });
  const joined = await stitched({ image1, image2, spacing_width: 2, spacing_color: 'green' });
  const green = [0, 1, 0, 1];
  const pixels = [0.25, 0.25, 0.25, 1, ...green, ...green, 0.5, 0.5, 0.5, 0.5];
  expect([...joined.data]).toEqual(pixels);
});

test('ImageStitch repeats the last picture of the shorter batch', async () => {
  const joined = await stitched({ image1: numbered(1, 1, 2), image2: numbered(1, 1, 3) });
  expect(rowsOf(joined)).toBe('0 0 | 1 1 | 1 2');
});

test.each([
  { direction: 'left', size: { width: 6, height: 4 }, sides: '16x4' },
  { direction: 'up', size: { width: 10, height: 6 }, sides: '10x10' },
])(
  'ImageStitch $direction with matching sizes scales the second picture by lanczos',
  async ({ direction, size, sides }) => {
    const image1 = picture({ width: 10, height: 4 });
    const image2 = picture({ width: 9, height: 6 });
    const joined = await stitched({ image1, image2, direction, match_image_size: true });
    expect(`${joined.width}x${joined.height}`).toBe(sides);
    const options = { ...size, method: 'lanczos', crop: 'disabled' } as const;
    const scaled = upscale(fakeContext({}), image2, options);
    expect(joined.data.slice(0, size.width * 3)).toEqual(scaled.data.slice(0, size.width * 3));
  },
);

test('ImageStitch without a second picture hands on the first one', async () => {
  const image1 = numbered(2, 2);
  const inputs = { image1, direction: 'up', match_image_size: true, spacing_width: 8 };
  expect(await runToImage(node('ImageStitch'), { ...inputs, spacing_color: 'red' })).toBe(image1);
});

const RUNS: readonly { readonly name: string; readonly inputs: Inputs }[] = [
  { name: 'ImageCrop', inputs: { x: 0, y: 0, width: 3, height: 3 } },
  { name: 'ImageFlip', inputs: { flip_method: 'x-axis: vertically' } },
  { name: 'ImageRotate', inputs: { rotation: '90 degrees' } },
  {
    name: 'ImagePadForOutpaint',
    inputs: { left: 8, top: 0, right: 0, bottom: 0, feathering: 0 },
  },
];

test.each(RUNS)('$name stops when the job is cancelled', async ({ name, inputs }) => {
  const check = (): never => {
    throw new Cancelled();
  };
  const given = { image: numbered(4, 4), ...inputs };
  const run = async () => runNode(node(name), given, { ...fakeContext({}), check });
  await expect(run).rejects.toThrow(Cancelled);
});

test.each(RUNS)('$name asks for its memory before taking it', async ({ name, inputs }) => {
  const reserve = (): never => {
    throw new OutOfMemory();
  };
  const given = { image: numbered(4, 4), ...inputs };
  const run = async () => runNode(node(name), given, { ...fakeContext({}), reserve });
  await expect(run).rejects.toThrow(OutOfMemory);
});
