import type { ImageValue } from './node.ts';
import type { ResampleContext, Size } from './resample.ts';
import { frameOf, fromBytes, newImage, toBytes } from './tensor.ts';

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
  const scaled = newImage(context, { ...image, ...size });
  for (let index = 0; index < image.batch; index++) {
    const source = {
      width: image.width,
      height: image.height,
      channels: image.channels,
      data: toBytes(image, index),
    };
    fromBytes(resize(context, source, size).data, frameOf(scaled, index));
  }
  return scaled;
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

/** Fixed-point weights of one target position, from source position `first` on. */
type Tap = { readonly first: number; readonly weights: Int32Array };

const lanczosTaps = (source: number, target: number): readonly Tap[] => {
  const scale = source / target;
  const stretch = Math.max(1, scale);
  return Array.from({ length: target }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - LOBES * stretch + 0.5));
    const end = Math.min(source, Math.trunc(centre + LOBES * stretch + 0.5));
    const raw = Array.from({ length: end - first }, (_unused, x) =>
      lanczos((x + first - centre + 0.5) / stretch),
    );
    const sum = raw.reduce((total, weight) => total + weight, 0);
    return {
      first,
      weights: Int32Array.from(
        raw,
        (weight) => Math.round(Math.abs(weight / sum) * PRECISION) * Math.sign(weight / sum),
      ),
    };
  });
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
    for (let x = 0, to = y * width * channels; x < width; x++, to += channels) {
      const tap = taps[x] as Tap;
      for (let channel = 0; channel < channels; channel++) {
        data[to + channel] = weigh(line, tap, { channel, channels });
      }
    }
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};

type Lane = { readonly channel: number; readonly channels: number };

const weigh = (line: Uint8Array, { first, weights }: Tap, { channel, channels }: Lane): number => {
  let sum = PRECISION / 2;
  let from = first * channels + channel;
  for (let k = 0; k < weights.length; k++, from += channels) {
    sum = (sum + Math.imul(line[from] as number, weights[k] as number)) | 0;
  }
  return sum >> PRECISION_BITS;
};

const resizeHeight = (context: ResampleContext, source: Bytes, height: number): Bytes => {
  const { channels, width } = source;
  context.reserve(width * height * channels);
  const data = new Uint8ClampedArray(width * height * channels);
  const length = width * channels;
  const sums = new Int32Array(length);
  for (const [y, { first, weights }] of lanczosTaps(source.height, height).entries()) {
    context.check();
    sums.fill(PRECISION / 2);
    for (let k = 0; k < weights.length; k++) {
      const [weight, from] = [weights[k] as number, (first + k) * length];
      for (let i = 0; i < length; i++)
        sums[i] = (sums[i] as number) + (source.data[from + i] as number) * weight;
    }
    for (let i = 0; i < length; i++) data[y * length + i] = (sums[i] as number) >> PRECISION_BITS;
  }
  return { width, height, channels, data: new Uint8Array(data.buffer) };
};
