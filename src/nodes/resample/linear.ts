import type { ImageValue } from '../node.ts';
import type { Resampler } from './resampler.ts';
import { type LoopContext, eachRow, newImage } from '../tensor.ts';

const { fround } = Math;

/**
 * For each target position: the source taps and their weights, in the order of their sum. The
 * original's compiled loops start with the second tap, which is visible in single precision.
 */
type Axis = {
  readonly taps: number;
  readonly indices: Int32Array;
  readonly weights: Float32Array;
};

/** Makes the table for one side, from its source length to its target length. */
type Tapper = (source: number, target: number) => Axis;

const position = (i: number, scale: number): number => fround(scale * (i + 0.5) - 0.5);

const newAxis = (taps: number, target: number): Axis => ({
  taps,
  indices: new Int32Array(target * taps),
  weights: new Float32Array(target * taps),
});

/** Returns two taps: straight lines between pixel centres. */
const linearAxis: Tapper = (source, target) => {
  const scale = fround(source / target);
  const axis = newAxis(2, target);
  for (let i = 0; i < target; i++) {
    const at = Math.max(0, position(i, scale));
    const first = Math.min(Math.floor(at), source - 1);
    const share = Math.min(fround(at - first), 1);
    axis.indices.set([Math.min(first + 1, source - 1), first], i * 2);
    axis.weights.set([share, 1 - share], i * 2);
  }
  return axis;
};

const CUBIC_STEPS = [0, -1, 1, 2] as const;

/** Returns four taps: cubic convolution. */
const cubicAxis: Tapper = (source, target) => {
  const scale = fround(source / target);
  const axis = newAxis(4, target);
  for (let i = 0; i < target; i++) {
    const at = position(i, scale);
    const first = Math.floor(at);
    const share = fround(at - first);
    const weights = [
      innerWeight(share),
      outerWeight(share + 1),
      innerWeight(1 - share),
      outerWeight(fround(1 - share) + 1),
    ];
    for (const [tap, step] of CUBIC_STEPS.entries()) {
      axis.indices[i * 4 + tap] = Math.min(Math.max(first + step, 0), source - 1);
      axis.weights[i * 4 + tap] = weights[tap] as number;
    }
  }
  return axis;
};

/**
 * Returns the weight of cubic convolution (Keys) with a = -0.75, for distances below 1. Every
 * rounding counts.
 */
const innerWeight = (distance: number): number => {
  const x = fround(distance);
  return fround(fround(fround(1.25 * x - 2.25) * x) * x) + 1;
};

/** Returns the weight for distances from 1 to 2. */
const outerWeight = (distance: number): number => {
  const x = fround(distance);
  return fround(fround(fround(-0.75 * x + 3.75) * x - 6) * x) + 3;
};

/** Above this sum of target sides the original uses its separable loop for colour pictures. */
const SMALL_SIDES = 128;

const separably =
  (tapper: Tapper): Resampler =>
  (context, image, size) => {
    const wide = newImage(context, { ...image, width: size.width });
    const scaled = newImage(context, { ...image, ...size });
    stretchRows(context, wide, image, tapper(image.width, size.width));
    mixRows(context, scaled, wide, tapper(image.height, size.height));
    return scaled;
  };

type Pass = (context: LoopContext, target: ImageValue, source: ImageValue, axis: Axis) => void;

const stretchRows: Pass = (context, wide, image, { taps, indices, weights }) => {
  const { channels, data } = image;
  eachRow(context, image, (row) => {
    const from = row * image.width * channels;
    const to = row * wide.width * channels;
    for (let x = 0; x < wide.width; x++) {
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        for (let tap = x * taps; tap < (x + 1) * taps; tap++) {
          const value = data[from + (indices[tap] as number) * channels + c] as number;
          sum = fround(value * (weights[tap] as number) + sum);
        }
        wide.data[to + x * channels + c] = sum;
      }
    }
  });
};

const mixRows: Pass = (context, scaled, wide, { taps, indices, weights }) => {
  const length = wide.width * wide.channels;
  eachRow(context, scaled, (row) => {
    const top = Math.floor(row / scaled.height) * wide.height;
    const target = scaled.data.subarray(row * length, (row + 1) * length);
    const first = (row % scaled.height) * taps;
    for (let tap = first; tap < first + taps; tap++) {
      const weight = weights[tap] as number;
      const from = (top + (indices[tap] as number)) * length;
      for (let i = 0; i < length; i++) {
        target[i] = (wide.data[from + i] as number) * weight + (target[i] as number);
      }
    }
  });
};

/**
 * Sums all four corners at once, with products of weights: the original's loop for small or RGBA
 * targets.
 */
const byCorners: Resampler = (context, image, size) => {
  const scaled = newImage(context, { ...image, ...size });
  const columns = linearAxis(image.width, size.width);
  const rows = linearAxis(image.height, size.height);
  const { channels, data, width } = image;
  eachRow(context, scaled, (row) => {
    const y = (row % scaled.height) * 2;
    const top = Math.floor(row / scaled.height) * image.height;
    const [lower, upper] = [rows.indices[y] as number, rows.indices[y + 1] as number];
    const [down, up] = [rows.weights[y] as number, rows.weights[y + 1] as number];
    for (let x = 0; x < scaled.width; x++) {
      const [right, left] = [
        columns.indices[x * 2] as number,
        columns.indices[x * 2 + 1] as number,
      ];
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
  });
  return scaled;
};

const linearly = separably(linearAxis);

/**
 * Interpolates linearly between the four nearest pixels, without antialiasing (v1's `bilinear`).
 */
export const resampleBilinear: Resampler = (context, image, size) =>
  size.width + size.height <= SMALL_SIDES || image.channels > 3
    ? byCorners(context, image, size)
    : linearly(context, image, size);

/**
 * Uses cubic convolution over the sixteen nearest pixels, without antialiasing (v1's `bicubic`).
 */
export const resampleBicubic = separably(cubicAxis);
