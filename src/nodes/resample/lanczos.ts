import type { NodeContext, Pixels } from '../node.ts';
import { type Size, pixelsOfBytes, toBytes } from '../tensor.ts';
import { lanczosAxis } from './axis.ts';
import { type Picture, scaleColumns, scaleRows } from './scale.ts';

type Bytes = Picture<Uint8Array>;

/** Scales bytes, as v1's `lanczos` does: it converts to bytes, and rounds between the two passes. */
export const resampleLanczos = (context: NodeContext, image: Pixels, size: Size): Pixels => {
  const { batch, channels, height, width } = image;
  const frames = Array.from({ length: batch }, (_, index) =>
    resized(context, { width, height, channels, data: toBytes(image, index) }, size),
  );
  return pixelsOfBytes(context, { ...image, ...size }, frames);
};

const resized = (context: NodeContext, source: Bytes, size: Size): Uint8Array => {
  if (source.width === size.width && source.height === size.height) return source.data;
  if (source.channels !== 4) return scaled(context, source, size);
  const data = scaled(context, { ...source, data: premultiplied(source.data) }, size);
  return unpremultiplied(data);
};

const scaled = (context: NodeContext, source: Bytes, { width, height }: Size): Uint8Array => {
  const across = (from: Bytes): Bytes => {
    const target = newBytes(context, { ...from, width });
    scaleRows(context, from, target, lanczosAxis(from.width, width));
    return target;
  };
  const down = (from: Bytes): Bytes => {
    const target = newBytes(context, { ...from, height });
    scaleColumns(context, from, target, lanczosAxis(from.height, height));
    return target;
  };
  // v1's library takes this order when the height loses more than twice what the width loses.
  const lost = source.height - height;
  const isDownFirst = lost > 0 && lost > 2 * (source.width - width);
  return (isDownFirst ? across(down(source)) : down(across(source))).data;
};

const newBytes = (context: NodeContext, { width, height, channels }: Bytes): Bytes => {
  const length = width * height * channels;
  context.reserve(length);
  return { width, height, channels, data: new Uint8Array(length) };
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
