import type { ImageValue } from '../node.ts';
import type { ResampleContext, Size } from './resample-context.ts';
import { scalePlainly } from './lanczos-plain.ts';
import type { Bytes } from './lanczos-taps.ts';
import { scaleWithVectors } from './lanczos-vectors.ts';
import { byteImage, toBytes } from '../tensor.ts';

/** Windowed sinc over bytes, widened when shrinking (v1's `lanczos`, which leaves the float world for it). */
export const resampleLanczos = (
  context: ResampleContext,
  image: ImageValue,
  size: Size,
): ImageValue => {
  const { batch, channels, height, width } = image;
  const frames = Array.from({ length: batch }, (_, index) => {
    const source = { width, height, channels, data: toBytes(image, index) };
    return resize(context, source, size).data;
  });
  const bytes = frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
  return byteImage(context, { batch, channels, ...size }, bytes);
};

const resize = (context: ResampleContext, source: Bytes, size: Size): Bytes => {
  if (source.width === size.width && source.height === size.height) return source;
  if (source.channels !== 4) return scale(context, source, size);
  const scaled = scale(context, { ...source, data: premultiplied(source.data) }, size);
  return { ...scaled, data: unpremultiplied(scaled.data) };
};

const scale = (context: ResampleContext, source: Bytes, size: Size): Bytes =>
  scaleWithVectors(context, source, size) ?? scalePlainly(context, source, size);

/** Colours are scaled with alpha multiplied in, so that hidden colours do not bleed. */
const premultiplied = (data: Uint8Array): Uint8Array => {
  const result = data.slice();
  for (let i = 0; i < data.length; i++) {
    const product = (data[i] as number) * (data[i | 3] as number) + 128;
    if ((i & 3) !== 3) result[i] = ((product >> 8) + product) >> 8;
  }
  return result;
};

const unpremultiplied = (data: Uint8Array): Uint8Array => {
  const result = data.slice();
  for (let i = 0; i < data.length; i++) {
    const alpha = data[i | 3] as number;
    if ((i & 3) !== 3 && alpha !== 0)
      result[i] = Math.min(255, Math.floor((255 * (data[i] as number)) / alpha));
  }
  return result;
};
