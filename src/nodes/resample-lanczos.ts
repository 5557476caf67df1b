import type { ImageValue } from './node.ts';
import type { ResampleContext, Size } from './resample.ts';
import { byteImage, toBytes } from './tensor.ts';

const LOBES = 3;
const PRECISION_BITS = 22;
const PRECISION = 2 ** PRECISION_BITS;

/** Bytes of one picture, rows × columns × channels. */
type Bytes = Size & { readonly channels: number; readonly data: Uint8Array };

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
  if (source.channels !== 4) return resizePasses(context, source, size);
  const scaled = resizePasses(context, { ...source, data: premultiplied(source.data) }, size);
  return { ...scaled, data: unpremultiplied(scaled.data) };
};

const resizePasses = (context: ResampleContext, source: Bytes, size: Size): Bytes => {
  const wide = source.width === size.width ? source : resizeWidth(context, source, size.width);
  return wide.height === size.height ? wide : resizeHeight(context, wide, size.height);
};

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

/** Fixed-point weights: for each target position, `reach` of them from source position `first` on. */
type Taps = { readonly first: Int32Array; readonly weights: Int32Array; readonly reach: number };

const lanczosTaps = (source: number, target: number): Taps => {
  const scale = source / target;
  const stretch = Math.max(1, scale);
  const windows = Array.from({ length: target }, (_unused, i) => {
    const centre = (i + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - LOBES * stretch + 0.5));
    const end = Math.min(source, Math.trunc(centre + LOBES * stretch + 0.5));
    return { centre, start, end };
  });
  const reach = windows.reduce((most, { start, end }) => Math.max(most, end - start), 1);
  const first = new Int32Array(target);
  const weights = new Int32Array(target * reach);
  for (const [i, { centre, start, end }] of windows.entries()) {
    const raw = Array.from({ length: end - start }, (_unused, x) =>
      lanczos((x + start - centre + 0.5) / stretch),
    );
    const sum = raw.reduce((total, weight) => total + weight, 0);
    // All have the same number of weights; where fewer are due the others, in front, are zero.
    first[i] = Math.max(0, end - reach);
    const skipped = start - (first[i] as number);
    for (const [k, weight] of raw.entries()) {
      const fixed = Math.round(Math.abs(weight / sum) * PRECISION) * Math.sign(weight / sum);
      weights[i * reach + skipped + k] = fixed;
    }
  }
  return { first, weights, reach };
};

const lanczos = (x: number): number => (x >= -LOBES && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0);

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI));

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

/** Where a line begins, in what is read and in what is written. */
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
