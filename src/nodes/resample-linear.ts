import type { ImageValue } from './node.ts';
import type { ResampleContext, Size } from './resample.ts';
import { newImage } from './tensor.ts';

/**
 * For each target position: where its source taps lie and what each weighs, in the order they are
 * summed. The original's compiled loops start with the second tap, and single precision shows it.
 */
type Axis = {
  readonly taps: number;
  readonly indices: Int32Array;
  readonly weights: Float32Array;
};

type Tapper = (source: number, target: number) => Axis;

/** Above this sum of target sides the original takes its separable loop for colour pictures. */
const SMALL_SIDES = 128;

/** Straight lines between the four nearest pixels, without antialiasing (v1's `bilinear`). */
export const resampleBilinear = (
  context: ResampleContext,
  image: ImageValue,
  size: Size,
): ImageValue =>
  size.width + size.height <= SMALL_SIDES || image.channels > 3
    ? resampleByCorners(context, image, size)
    : resampleSeparably(context, image, { size, tapper: linearAxis });

/** Cubic convolution over the sixteen nearest pixels, without antialiasing (v1's `bicubic`). */
export const resampleBicubic = (
  context: ResampleContext,
  image: ImageValue,
  size: Size,
): ImageValue => resampleSeparably(context, image, { size, tapper: cubicAxis });

const position = (i: number, scale: number): number => Math.fround(scale * (i + 0.5) - 0.5);

const newAxis = (taps: number, target: number): Axis => ({
  taps,
  indices: new Int32Array(target * taps),
  weights: new Float32Array(target * taps),
});

const linearAxis: Tapper = (source, target) => {
  const scale = Math.fround(source / target);
  const axis = newAxis(2, target);
  for (let i = 0; i < target; i++) {
    const at = Math.max(0, position(i, scale));
    const first = Math.min(Math.floor(at), source - 1);
    const share = Math.min(Math.fround(at - first), 1);
    axis.indices.set([Math.min(first + 1, source - 1), first], i * 2);
    axis.weights.set([share, 1 - share], i * 2);
  }
  return axis;
};

const CUBIC_STEPS = [0, -1, 1, 2] as const;

const cubicAxis: Tapper = (source, target) => {
  const scale = Math.fround(source / target);
  const axis = newAxis(4, target);
  for (let i = 0; i < target; i++) {
    const at = position(i, scale);
    const first = Math.floor(at);
    const share = Math.fround(at - first);
    const weights = [
      innerWeight(share),
      outerWeight(share + 1),
      innerWeight(1 - share),
      outerWeight(Math.fround(1 - share) + 1),
    ];
    for (const [tap, step] of CUBIC_STEPS.entries()) {
      axis.indices[i * 4 + tap] = Math.min(Math.max(first + step, 0), source - 1);
      axis.weights[i * 4 + tap] = weights[tap] as number;
    }
  }
  return axis;
};

const { fround } = Math;

/** Cubic convolution (Keys) with a = -0.75, for distances below 1. Every rounding counts. */
const innerWeight = (distance: number): number => {
  const x = fround(distance);
  return fround(fround(fround(1.25 * x - 2.25) * x) * x) + 1;
};

/** The same for distances from 1 to 2. */
const outerWeight = (distance: number): number => {
  const x = fround(distance);
  return fround(fround(fround(-0.75 * x + 3.75) * x - 6) * x) + 3;
};

type Plan = { readonly size: Size; readonly tapper: Tapper };

const resampleSeparably = (
  context: ResampleContext,
  image: ImageValue,
  { size, tapper }: Plan,
): ImageValue => {
  const wide = newImage(context, { ...image, width: size.width });
  const scaled = newImage(context, { ...image, ...size });
  const columns = tapper(image.width, size.width);
  for (let row = 0; row < image.batch * image.height; row++) {
    context.check();
    stretchRow({ image, wide, row, axis: columns });
  }
  const rows = tapper(image.height, size.height);
  for (let row = 0; row < image.batch * size.height; row++) {
    context.check();
    mixRows({ wide, scaled, row, axis: rows });
  }
  return scaled;
};

type StretchTask = {
  readonly image: ImageValue;
  readonly wide: ImageValue;
  readonly row: number;
  readonly axis: Axis;
};

const stretchRow = ({ image, wide, row, axis }: StretchTask): void => {
  const { channels, data } = image;
  const from = row * image.width * channels;
  const to = row * wide.width * channels;
  for (let x = 0; x < wide.width; x++) {
    for (let c = 0; c < channels; c++) {
      let sum = 0;
      for (let tap = x * axis.taps; tap < (x + 1) * axis.taps; tap++) {
        const value = data[from + (axis.indices[tap] as number) * channels + c] as number;
        sum = Math.fround(value * (axis.weights[tap] as number) + sum);
      }
      wide.data[to + x * channels + c] = sum;
    }
  }
};

type MixTask = {
  readonly wide: ImageValue;
  readonly scaled: ImageValue;
  readonly row: number;
  readonly axis: Axis;
};

const mixRows = ({ wide, scaled, row, axis }: MixTask): void => {
  const length = wide.width * wide.channels;
  const top = Math.floor(row / scaled.height) * wide.height;
  const target = scaled.data.subarray(row * length, (row + 1) * length);
  const first = (row % scaled.height) * axis.taps;
  for (let tap = first; tap < first + axis.taps; tap++) {
    const weight = axis.weights[tap] as number;
    const from = (top + (axis.indices[tap] as number)) * length;
    for (let i = 0; i < length; i++) {
      target[i] = (wide.data[from + i] as number) * weight + (target[i] as number);
    }
  }
};

/** All four corners at once with products of weights: the original's loop for small or RGBA targets. */
const resampleByCorners = (context: ResampleContext, image: ImageValue, size: Size): ImageValue => {
  const scaled = newImage(context, { ...image, ...size });
  const columns = linearAxis(image.width, size.width);
  const rows = linearAxis(image.height, size.height);
  for (let row = 0; row < image.batch * size.height; row++) {
    context.check();
    cornerRow({ image, scaled, row, columns, rows });
  }
  return scaled;
};

type CornerTask = {
  readonly image: ImageValue;
  readonly scaled: ImageValue;
  readonly row: number;
  readonly columns: Axis;
  readonly rows: Axis;
};

const cornerRow = ({ image, scaled, row, columns, rows }: CornerTask): void => {
  const { channels, data, width } = image;
  const y = (row % scaled.height) * 2;
  const top = Math.floor(row / scaled.height) * image.height;
  const [lower, upper] = [rows.indices[y] as number, rows.indices[y + 1] as number];
  const [down, up] = [rows.weights[y] as number, rows.weights[y + 1] as number];
  for (let x = 0; x < scaled.width; x++) {
    const [right, left] = [columns.indices[x * 2] as number, columns.indices[x * 2 + 1] as number];
    const [east, west] = [columns.weights[x * 2] as number, columns.weights[x * 2 + 1] as number];
    for (let c = 0; c < channels; c++) {
      const at = (line: number, column: number): number =>
        data[((top + line) * width + column) * channels + c] as number;
      let sum = fround(at(upper, right) * fround(up * east));
      sum = fround(at(upper, left) * fround(up * west) + sum);
      sum = fround(at(lower, left) * fround(down * west) + sum);
      sum = fround(at(lower, right) * fround(down * east) + sum);
      scaled.data[(row * scaled.width + x) * channels + c] = sum;
    }
  }
};
