import type { ResampleContext, Size } from './resample.ts';
import { type Bytes, PRECISION, PRECISION_BITS, type Taps, lanczosTaps } from './lanczos-taps.ts';

/** Scales one picture, columns first, where no vector instructions can be had. */
export const scalePlainly = (context: ResampleContext, source: Bytes, size: Size): Bytes => {
  const wide = source.width === size.width ? source : resizeWidth(context, source, size.width);
  return wide.height === size.height ? wide : resizeHeight(context, wide, size.height);
};

const resizeWidth = (context: ResampleContext, source: Bytes, width: number): Bytes => {
  const { channels, height } = source;
  context.reserve(width * height * channels);
  const data = new Uint8ClampedArray(width * height * channels);
  const taps = lanczosTaps(source.width, width);
  for (let y = 0; y < height; y++) {
    context.check();
    const line = { from: y * source.width * channels, to: y * width * channels };
    if (channels === 3) weighColours(source.data, data, line, taps);
    else weighChannels(source.data, data, { ...line, channels }, taps);
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};

/** The start of a line in the source and in the target. */
type Line = { readonly from: number; readonly to: number };

// The inner loops below decide how long scaling takes: no calls, no views, sums in locals of their
// own, and `| 0` wherever V8 would otherwise count in floating point.

/** The three channels of a line at once. */
const weighColours = (
  source: Uint8Array,
  target: Uint8ClampedArray,
  line: Line,
  { first, weights, reach }: Taps,
): void => {
  for (let x = 0, at = 0, to = line.to; x < first.length; x = (x + 1) | 0, to = (to + 3) | 0) {
    let red = PRECISION / 2;
    let green = PRECISION / 2;
    let blue = PRECISION / 2;
    let from = (line.from + (first[x] as number) * 3) | 0;
    for (const end = (at + reach) | 0; at < end; at = (at + 1) | 0, from = (from + 3) | 0) {
      const weight = weights[at] as number;
      red = (red + Math.imul(source[from] as number, weight)) | 0;
      green = (green + Math.imul(source[from + 1] as number, weight)) | 0;
      blue = (blue + Math.imul(source[from + 2] as number, weight)) | 0;
    }
    target[to] = red >> PRECISION_BITS;
    target[to + 1] = green >> PRECISION_BITS;
    target[to + 2] = blue >> PRECISION_BITS;
  }
};

/** A line of any number of channels. */
const weighChannels = (
  source: Uint8Array,
  target: Uint8ClampedArray,
  { from, to, channels }: Line & { readonly channels: number },
  { first, weights, reach }: Taps,
): void => {
  for (let i = 0; i < first.length * channels; i++) {
    const x = Math.floor(i / channels);
    let at = (from + (first[x] as number) * channels + (i % channels)) | 0;
    let sum = PRECISION / 2;
    for (let k = x * reach; k < (x + 1) * reach; k++, at = (at + channels) | 0) {
      sum = (sum + Math.imul(source[at] as number, weights[k] as number)) | 0;
    }
    target[to + i] = sum >> PRECISION_BITS;
  }
};

const resizeHeight = (context: ResampleContext, source: Bytes, height: number): Bytes => {
  const { channels, width } = source;
  context.reserve(width * height * channels);
  const data = new Uint8ClampedArray(width * height * channels);
  const length = width * channels;
  const { first, weights, reach } = lanczosTaps(source.height, height);
  for (let y = 0; y < height; y++) {
    context.check();
    const line = { from: (first[y] as number) * length, to: y * length, length };
    weighColumns(source.data, data, line, weights.subarray(y * reach, (y + 1) * reach));
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};

type Rows = Line & { readonly length: number };

/** One row of the target from those behind one another in the source, four columns at a time. */
const weighColumns = (
  source: Uint8Array,
  target: Uint8ClampedArray,
  { from, to, length }: Rows,
  weights: Int32Array,
): void => {
  let i = 0;
  for (const end = length - (length % 4); i < end; i = (i + 4) | 0) {
    let first = PRECISION / 2;
    let second = PRECISION / 2;
    let third = PRECISION / 2;
    let fourth = PRECISION / 2;
    for (let k = 0, at = (from + i) | 0; k < weights.length; k++, at = (at + length) | 0) {
      const weight = weights[k] as number;
      first = (first + Math.imul(source[at] as number, weight)) | 0;
      second = (second + Math.imul(source[at + 1] as number, weight)) | 0;
      third = (third + Math.imul(source[at + 2] as number, weight)) | 0;
      fourth = (fourth + Math.imul(source[at + 3] as number, weight)) | 0;
    }
    target[to + i] = first >> PRECISION_BITS;
    target[to + i + 1] = second >> PRECISION_BITS;
    target[to + i + 2] = third >> PRECISION_BITS;
    target[to + i + 3] = fourth >> PRECISION_BITS;
  }
  for (; i < length; i++) {
    let sum = PRECISION / 2;
    for (let k = 0, at = (from + i) | 0; k < weights.length; k++, at = (at + length) | 0) {
      sum = (sum + Math.imul(source[at] as number, weights[k] as number)) | 0;
    }
    target[to + i] = sum >> PRECISION_BITS;
  }
};
