import { expect, test } from 'vitest';
import { BASIC_NODES } from '../../src/nodes/image/basic.ts';
import { OutOfMemory } from '../../src/nodes/node.ts';
import type { Value } from '../../src/nodes/node.ts';
import { nodeNamed, picture, runNode, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const node = (name: string) => nodeNamed(BASIC_NODES, name);

test('EmptyImage paints every picture of the batch in the colour given as 0xRRGGBB', async () => {
  const image = await runToImage(node('EmptyImage'), {
    width: 2,
    height: 1,
    batch_size: 2,
    color: 0xff8000,
  });
  const orange = [1, Math.fround(128 / 255), 0];
  expect(image).toMatchObject({ width: 2, height: 1, batch: 2, channels: 3 });
  expect([...image.data]).toEqual([...orange, ...orange, ...orange, ...orange]);
});

test('EmptyImage asks for its memory before taking it', async () => {
  const context = {
    ...fakeContext({}),
    reserve: (bytes: number) => {
      throw new OutOfMemory(String(bytes));
    },
  };
  const huge = { width: 16384, height: 16384, batch_size: 4096, color: 0 };
  await expect(async () => runNode(node('EmptyImage'), huge, context)).rejects.toThrow(
    String(16384 * 16384 * 4096 * 3 * 4),
  );
});

test('EmptyImage fails on a negative size that came through a link, and not for want of memory', async () => {
  const inputs = { width: -5, height: 8, batch_size: 1, color: 0 };
  await expect(async () => runNode(node('EmptyImage'), inputs)).rejects.toMatchObject({
    exceptionType: 'RuntimeError',
  });
});

test('GetImageSize sends the size as text and puts out width, height and batch size', async () => {
  const texts: string[] = [];
  const context = fakeContext({ onText: (text) => texts.push(text) });
  const image = picture({ width: 5, height: 3, batch: 2 });
  expect(await runNode(node('GetImageSize'), { image }, context)).toEqual([5, 3, 2]);
  expect(texts).toEqual(['width: 5, height: 3\n batch size: 2']);
});

test('ImageBatch gives the picture without alpha an opaque one', async () => {
  const image1 = picture({ width: 2, height: 2 });
  const image2 = picture({ width: 2, height: 2, channels: 4 });
  const image = await runToImage(node('ImageBatch'), { image1, image2 });
  expect(image).toMatchObject({ batch: 2, channels: 4 });
  expect([3, 7, 11, 15].map((i) => image.data[i])).toEqual([1, 1, 1, 1]);
  expect(image.data.slice(16)).toEqual(image2.data);
});

test('ImageBatch fits the second picture to the size of the first', async () => {
  const image1 = picture({ width: 6, height: 4 });
  const image2 = picture({ width: 9, height: 9, level: () => 0.25 });
  const image = await runToImage(node('ImageBatch'), { image1, image2 });
  expect(image).toMatchObject({ batch: 2, width: 6, height: 4 });
  expect(new Set(image.data.slice(72))).toEqual(new Set([0.25]));
});

test('RepeatImageBatch repeats the whole batch in order', async () => {
  const given = picture({ width: 2, height: 1, batch: 2 });
  const image = await runToImage(node('RepeatImageBatch'), { image: given, amount: 3 });
  expect(image.batch).toBe(6);
  expect([...image.data]).toEqual([...given.data, ...given.data, ...given.data]);
});

test.each([
  { batch_index: 0, length: 2, taken: [0, 1] },
  { batch_index: 2, length: 9, taken: [2, 3] },
  { batch_index: 99, length: 1, taken: [3] },
])(
  'ImageFromBatch from $batch_index, $length long, takes pictures $taken of four',
  async ({ batch_index, length, taken }) => {
    const given = picture({ width: 1, height: 1, batch: 4, level: (i) => Math.floor(i / 3) });
    const image = await runToImage(node('ImageFromBatch'), { image: given, batch_index, length });
    expect([...image.data]).toEqual(taken.flatMap((index) => [index, index, index]));
  },
);

test.each<{ readonly given: Value; readonly words: string }>([
  { given: 'cat.png', words: 'image: expected an image, got the text "cat.png"' },
  { given: 3, words: 'image: expected an image, got the number 3' },
  { given: null, words: 'image: expected an image, got nothing' },
  {
    given: { kind: 'mask', batch: 1, height: 1, width: 1, data: new Float32Array(1) },
    words: 'image: expected an image, got a mask',
  },
])('a picture input refuses $given in plain words', async ({ given, words }) => {
  await expect(async () => runNode(node('GetImageSize'), { image: given })).rejects.toMatchObject({
    exceptionType: 'TypeError',
    message: words,
  });
});
