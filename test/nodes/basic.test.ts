import { expect, test } from 'vitest';
import { BASIC_NODES } from '../../src/nodes/image/basic.ts';
import { Cancelled, type Value } from '../../src/nodes/node.ts';
import { nodeNamed, picture, runNode, runToImage } from '../support/graphs/pictures.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const node = (name: string) => nodeNamed(BASIC_NODES, name);

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

test('RepeatImageBatch stops at once, however often it repeats a picture without pixels', async () => {
  const check = (): never => {
    throw new Cancelled();
  };
  const context = { ...fakeContext({}), check };
  const inputs = { image: picture({ width: 0, height: 8 }), amount: 1e12 };
  await expect(async () => runNode(node('RepeatImageBatch'), inputs, context)).rejects.toThrow(
    Cancelled,
  );
});

test.each<{ readonly given: Value; readonly words: string }>([
  { given: 'cat.png', words: 'image: expected an image, got the text "cat.png"' },
  { given: 3, words: 'image: expected an image, got the number 3' },
  { given: null, words: 'image: expected an image, got nothing' },
  {
    given: { kind: 'mask', batch: 1, height: 1, width: 1, channels: 1, data: new Float32Array(1) },
    words: 'image: expected an image, got a mask',
  },
  {
    given: { kind: 'image', batch: 1, height: 1, width: 1 } as never,
    words: 'image: expected an image, got a list or an object',
  },
])('a picture input refuses $given in plain words', async ({ given, words }) => {
  await expect(async () => runNode(node('GetImageSize'), { image: given })).rejects.toMatchObject({
    exceptionType: 'TypeError',
    message: words,
  });
});
