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
  const reach = Math.min(source, Math.ceil(LOBES * stretch) * 2 + 1);
  const first = new Int32Array(target);
  const weights = new Int32Array(target * reach);
  for (let i = 0; i < target; i++) {
    const centre = (i + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - LOBES * stretch + 0.5));
    const end = Math.min(source, Math.trunc(centre + LOBES * stretch + 0.5));
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
    const line = source.data.subarray(y * source.width * channels);
    const target = data.subarray(y * width * channels, (y + 1) * width * channels);
    weighLine(line, target, taps, channels);
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};

const weighLine = (
  line: Uint8Array,
  target: Uint8ClampedArray,
  taps: Taps,
  channels: number,
): void => {
  if (channels === 3) return weighColours(line, target, taps);
  for (let channel = 0; channel < channels; channel++) {
    weighChannel(line, target, { taps, channel, channels });
  }
};

/** All three channels of a line at once: a weight is read once, and nobody waits for a sum. */
const weighColours = (line: Uint8Array, target: Uint8ClampedArray, taps: Taps): void => {
  const { first, weights, reach } = taps;
  for (let to = 0, x = 0, at = 0; x < first.length; x++, to += 3) {
    let red = PRECISION / 2;
    let green = PRECISION / 2;
    let blue = PRECISION / 2;
    let from = (first[x] as number) * 3;
    for (const end = at + reach; at < end; at++, from += 3) {
      const weight = weights[at] as number;
      red = (red + Math.imul(line[from] as number, weight)) | 0;
      green = (green + Math.imul(line[from + 1] as number, weight)) | 0;
      blue = (blue + Math.imul(line[from + 2] as number, weight)) | 0;
    }
    target[to] = red >> PRECISION_BITS;
    target[to + 1] = green >> PRECISION_BITS;
    target[to + 2] = blue >> PRECISION_BITS;
  }
};

type Lane = { readonly taps: Taps; readonly channel: number; readonly channels: number };

/** One channel of a line, from its pixels to those of the target. */
const weighChannel = (
  line: Uint8Array,
  target: Uint8ClampedArray,
  { taps, channel, channels }: Lane,
): void => {
  const { first, weights, reach } = taps;
  for (let to = channel, x = 0, at = 0; x < first.length; x++, to += channels) {
    let sum = PRECISION / 2;
    let from = (first[x] as number) * channels + channel;
    for (const end = at + reach; at < end; at++, from += channels) {
      sum = (sum + Math.imul(line[from] as number, weights[at] as number)) | 0;
    }
    target[to] = sum >> PRECISION_BITS;
  }
};

const resizeHeight = (context: ResampleContext, source: Bytes, height: number): Bytes => {
  const { channels, width } = source;
  context.reserve(width * height * channels);
  const data = new Uint8ClampedArray(width * height * channels);
  const length = width * channels;
  const sums = new Int32Array(length);
  const { first, weights, reach } = lanczosTaps(source.height, height);
  for (let y = 0; y < height; y++) {
    context.check();
    sums.fill(PRECISION / 2);
    const lines = source.data.subarray((first[y] as number) * length);
    addLines(sums, lines, weights.subarray(y * reach, (y + 1) * reach));
    for (let i = 0; i < length; i++) data[y * length + i] = (sums[i] as number) >> PRECISION_BITS;
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};

/** Lines lie one behind the other, a weight for each; four at a time spare most of the stores. */
const addLines = (sums: Int32Array, lines: Uint8Array, weights: Int32Array): void => {
  const { length } = sums;
  let k = 0;
  for (; k + 4 <= weights.length; k += 4) {
    addFourLines(sums, lines.subarray(k * length), weights.subarray(k, k + 4));
  }
  for (; k < weights.length; k++) {
    addLine(sums, lines.subarray(k * length), weights[k] as number);
  }
};

const addFourLines = (sums: Int32Array, lines: Uint8Array, weights: Int32Array): void => {
  const { length } = sums;
  const [first, second, third, fourth] = weights as unknown as readonly [
    number,
    number,
    number,
    number,
  ];
  const [line2, line3, line4] = [length, 2 * length, 3 * length] as const;
  for (let i = 0; i < length; i++) {
    sums[i] =
      ((sums[i] as number) +
        Math.imul(lines[i] as number, first) +
        Math.imul(lines[i + line2] as number, second) +
        Math.imul(lines[i + line3] as number, third) +
        Math.imul(lines[i + line4] as number, fourth)) |
      0;
  }
};

const addLine = (sums: Int32Array, line: Uint8Array, weight: number): void => {
  if (weight === 0) return;
  for (let i = 0; i < sums.length; i++) {
    sums[i] = (sums[i] as number) + Math.imul(line[i] as number, weight);
  }
};
