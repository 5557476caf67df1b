import type { Resampler } from './resampler.ts';
import { type Bytes, PRECISION, PRECISION_BITS, lanczosTaps } from './lanczos-taps.ts';
import { scaleWithVectors } from './lanczos-vectors.ts';
import { type LoopContext, type Size, byteImage, toBytes } from '../tensor.ts';

/**
 * Scales bytes with a windowed sinc, which is wider when the picture shrinks. v1's `lanczos`
 * converts to bytes for it, too.
 */
export const resampleLanczos: Resampler = (context, image, size) => {
  const { batch, channels, height, width } = image;
  const frames = Array.from({ length: batch }, (_, index) => {
    const source = { width, height, channels, data: toBytes(image, index) };
    return resize(context, source, size).data;
  });
  const bytes = frames.length === 1 && frames[0] ? frames[0] : Buffer.concat(frames);
  return byteImage(context, { batch, channels, ...size }, bytes);
};

const resize = (context: LoopContext, source: Bytes, size: Size): Bytes => {
  if (source.width === size.width && source.height === size.height) return source;
  if (source.channels !== 4) return scale(context, source, size);
  const scaled = scale(context, { ...source, data: premultiplied(source.data) }, size);
  return { ...scaled, data: unpremultiplied(scaled.data) };
};

const scale = (context: LoopContext, source: Bytes, size: Size): Bytes =>
  scaleWithVectors(context, source, size) ?? scalePlainly(context, source, size);

/** Multiplies colours by alpha before scaling, so that hidden colours do not spread. */
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

/**
 * Scales one picture, columns first. Used when the processor has no vector instructions.
 * @internal
 */
export const scalePlainly = (context: LoopContext, source: Bytes, size: Size): Bytes => {
  const wide = resized(context, source, { ...size, height: source.height });
  return resized(context, wide, size);
};

/** Scales one picture along the one side that differs. */
const resized = (context: LoopContext, source: Bytes, { width, height }: Size): Bytes => {
  const { channels } = source;
  const isAcross = source.width !== width;
  if (!isAcross && source.height === height) return source;
  const taps = isAcross ? lanczosTaps(source.width, width) : lanczosTaps(source.height, height);
  const { first, weights, reach } = taps;
  const step = isAcross ? channels : width * channels;
  context.reserve(width * height * channels);
  const data = new Uint8ClampedArray(width * height * channels);
  for (let y = 0, to = 0; y < height; y++) {
    context.check();
    for (let i = 0; i < width * channels; i++, to++) {
      const place = isAcross ? Math.floor(i / channels) : y;
      const start = isAcross ? y * source.width * channels + (i % channels) : i;
      let at = start + (first[place] as number) * step;
      let sum = PRECISION / 2;
      for (let k = place * reach; k < (place + 1) * reach; k++, at += step) {
        sum = (sum + Math.imul(source.data[at] as number, weights[k] as number)) | 0;
      }
      data[to] = sum >> PRECISION_BITS;
    }
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};
