import type { ResampleContext, Size } from './resample-context.ts';
import { type Bytes, PRECISION, PRECISION_BITS, lanczosTaps } from './lanczos-taps.ts';

/** Scales one picture, columns first; used where the processor has no vector instructions. */
export const scalePlainly = (context: ResampleContext, source: Bytes, size: Size): Bytes => {
  const wide = resized(context, source, { ...size, height: source.height });
  return resized(context, wide, size);
};

/** Scales one picture along the one side that differs. */
const resized = (context: ResampleContext, source: Bytes, { width, height }: Size): Bytes => {
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
