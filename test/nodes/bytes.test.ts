import { expect, test } from 'vitest';
import type { ImageValue } from '../../src/nodes/node.ts';
import { byteImage, byteImageSize, levelOf, quantise, toBytes } from '../../src/nodes/tensor.ts';
import { buffersOf } from '../../src/upstreams/execution/memory-meter.ts';

const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const SHAPE = { batch: 2, height: 8, width: 16, channels: 1 };

const open = (): ImageValue => byteImage({ reserve: () => {} }, SHAPE, EVERY_BYTE);

test('every byte of a file comes through the float levels unchanged', () => {
  expect(quantise(Float32Array.from(EVERY_BYTE, levelOf))).toEqual(EVERY_BYTE);
});

test('a picture of bytes has the float levels of its bytes', () => {
  expect(open().data).toEqual(Float32Array.from(EVERY_BYTE, levelOf));
});

test('a picture of bytes is saved frame by frame as it came', () => {
  expect(toBytes(open(), 1)).toEqual(EVERY_BYTE.subarray(128));
});

test('other pixels in a copy of a picture of bytes are the ones that are saved', () => {
  const changed = { ...open(), data: new Float32Array(256).fill(1) };
  expect(toBytes(changed, 0)).toEqual(new Uint8Array(128).fill(255));
});

test('a picture of bytes counts with the floats it may become, read or not', () => {
  const image = open();
  const before = [...buffersOf([image, image]).values()];
  void image.data;
  expect(before).toEqual([byteImageSize(EVERY_BYTE)]);
  expect([...buffersOf([image]).values()]).toEqual(before);
});
