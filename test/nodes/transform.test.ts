import { expect, test } from 'vitest';
import type { Pixels, Inputs, NodeFailure } from '../../src/nodes/node.ts';
import { TRANSFORM_NODES } from '../../src/nodes/image/transform.ts';
import { nodeNamed, picture, rowsOf, runNode, runToImage } from '../support/graphs/pictures.ts';

const node = (name: string) => nodeNamed(TRANSFORM_NODES, name);

/** A picture whose pixels are numbered row by row, so that one can see where each went. */
const numbered = (width: number, height: number, batch = 1): Pixels =>
  picture({ width, height, batch, channels: 1, level: (i) => i });

test.each([
  { box: { x: 4, y: 0, width: 1, height: 1 }, rows: '3' },
  { box: { x: -2, y: -3, width: 2, height: 1 }, rows: '' },
  { box: { x: -3, y: -2, width: 2, height: 1 }, rows: '5 6' },
])('ImageCrop $box of 4×3 pixels leaves $rows', async ({ box, rows }) => {
  const cropped = await runNode(node('ImageCrop'), { image: numbered(4, 3), ...box }).then(
    ([image]) => rowsOf(image as Pixels),
    (error: NodeFailure) => (error.exceptionType === 'ValueError' ? '' : error.message),
  );
  expect(cropped).toBe(rows);
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

const padded = async (image: Pixels, inputs: Inputs): Promise<[Pixels, Pixels]> => {
  const none = { left: 0, top: 0, right: 0, bottom: 0, feathering: 0 };
  const outputs = await runNode(node('ImagePadForOutpaint'), { ...none, image, ...inputs });
  return outputs as [Pixels, Pixels];
};

test('ImagePadForOutpaint puts every picture on grey, and marks the margins in one mask', async () => {
  const [image, mask] = await padded(numbered(2, 1, 2), { left: 1, bottom: 1 });
  expect(rowsOf(image)).toBe('0.5 0 1 | 0.5 0.5 0.5 | 0.5 2 3 | 0.5 0.5 0.5');
  expect(mask).toMatchObject({ batch: 1, width: 3, height: 2 });
  expect(rowsOf(mask)).toBe('1 0 0 | 1 1 1');
});

test('ImagePadForOutpaint refuses margins below 0', async () => {
  await expect(padded(numbered(4, 4), { left: -1 })).rejects.toThrow('cannot be below 0');
});

test('ResizeAndPadImage is all padding when the picture is too thin to leave a pixel', async () => {
  const sides = { target_width: 10, target_height: 10, padding_color: 'white' };
  const inputs = { image: numbered(1, 1000), ...sides, interpolation: 'area' };
  expect(new Set((await runToImage(node('ResizeAndPadImage'), inputs)).data)).toEqual(new Set([1]));
});

const stitched = (inputs: Inputs): Promise<Pixels> =>
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

test('ImageStitch without a second picture hands on the first one', async () => {
  const image1 = numbered(2, 2);
  const inputs = { image1, direction: 'up', match_image_size: true, spacing_width: 8 };
  expect(await runToImage(node('ImageStitch'), { ...inputs, spacing_color: 'red' })).toBe(image1);
});
