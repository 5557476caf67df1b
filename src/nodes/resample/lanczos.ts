import type { ImageValue } from '../node.ts';
import { type LoopContext, type Size, imageOfBytes, newImage, toBytes } from '../tensor.ts';
import { lanczosAxis } from './axis.ts';
import { type Picture, scaleColumns, scaleRows } from './scale.ts';

/** Scales bytes, as v1's `lanczos` does: it converts to bytes, and rounds between the two passes. */
export const resampleLanczos = (
  context: LoopContext,
  image: ImageValue,
  size: Size,
): ImageValue => {
  const { batch, channels, height, width } = image;
  const frames = Array.from({ length: batch }, (_, index) =>
    resized(context, { width, height, channels, data: toBytes(image, index) }, size),
  );
  return imageOfBytes(context, { channels, ...size }, frames);
};

const resized = (context: LoopContext, source: Picture<Uint8Array>, size: Size): Uint8Array => {
  if (source.width === size.width && source.height === size.height) return source.data;
  if (source.channels !== 4) return scaled(context, source, size);
  const data = scaled(context, { ...source, data: premultiplied(source.data) }, size);
  return unpremultiplied(data);
};

const scaled = (context: LoopContext, source: Picture<Uint8Array>, size: Size): Uint8Array => {
  const shape = { batch: 1, channels: source.channels };
  const wide = newImage(context, { ...shape, width: size.width, height: source.height });
  scaleRows(context, source, wide, lanczosAxis(source.width, size.width));
  round(wide.data);
  const target = newImage(context, { ...shape, ...size });
  scaleColumns(context, wide, target, lanczosAxis(source.height, size.height));
  round(target.data);
  return new Uint8Array(target.data);
};

/** Rounds halves up, as v1 does. Where alpha is low, one level more or less is visible later. */
const round = (levels: Float32Array): void => {
  for (let i = 0; i < levels.length; i++) {
    levels[i] = Math.min(255, Math.max(0, Math.floor((levels[i] as number) + 0.5)));
  }
};

/** Multiplies colours by alpha before scaling, so that hidden colours do not spread. */
const premultiplied = (data: Uint8Array): Uint8Array =>
  data.map((level, i) =>
    (i & 3) === 3 ? level : Math.round((level * (data[i | 3] as number)) / 255),
  );

const unpremultiplied = (data: Uint8Array): Uint8Array =>
  data.map((level, i) => {
    const alpha = data[i | 3] as number;
    return (i & 3) === 3 || alpha === 0 ? level : Math.min(255, Math.floor((255 * level) / alpha));
  });
