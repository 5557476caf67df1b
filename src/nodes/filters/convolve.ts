import type { Kernel } from './kernel.ts';
import { type ImageValue, type NodeContext, NodeFailure } from '../node.ts';
import { eachRow, newImage } from '../tensor.ts';

type Context = Pick<NodeContext, 'reserve' | 'check'>;

/** Weight by weight up to this many products (about two seconds); beyond, rows and columns apart. */
const DIRECT_PRODUCTS = 1e9;

/** Weighs every pixel's neighbourhood, mirrored at the borders without repeating the edge pixel. */
export const convolve = (context: Context, image: ImageValue, kernel: Kernel): ImageValue => {
  const radius = (kernel.side - 1) / 2;
  if (radius >= image.width || radius >= image.height) {
    throw new NodeFailure(
      'RuntimeError',
      `A radius of ${radius} needs a picture larger than ${radius} pixels on both sides; this one is ${image.width} × ${image.height}`,
    );
  }
  const products = image.data.length * kernel.weights.length;
  return products <= DIRECT_PRODUCTS
    ? convolveDirectly(context, image, kernel)
    : convolveSeparably(context, image, kernel);
};

/**
 * Every product in the original's order: equal to the last bit.
 * @internal
 */
export const convolveDirectly = (
  context: Context,
  image: ImageValue,
  kernel: Kernel,
): ImageValue => {
  const result = newImage(context, image);
  eachRow(context, image, (row) => convolveRow({ image, result, kernel, row }));
  return result;
};

type RowTask = {
  readonly image: ImageValue;
  readonly result: ImageValue;
  readonly kernel: Kernel;
  readonly row: number;
};

const convolveRow = ({ image, result, kernel, row }: RowTask): void => {
  const { width, height, channels } = image;
  const radius = (kernel.side - 1) / 2;
  const top = Math.floor(row / height) * height;
  const target = result.data.subarray(row * width * channels, (row + 1) * width * channels);
  const line = new Float32Array((width + 2 * radius) * channels);
  for (let ky = 0; ky < kernel.side; ky++) {
    const y = reflect((row % height) + ky - radius, height);
    mirrorLine({ image, line, from: (top + y) * width * channels, radius });
    for (let kx = 0; kx < kernel.side; kx++) {
      const weight = kernel.weights[ky * kernel.side + kx] as number;
      const shift = kx * channels;
      for (let i = 0; i < target.length; i++) {
        target[i] = (line[i + shift] as number) * weight + (target[i] as number);
      }
    }
  }
};

const reflect = (i: number, length: number): number => {
  if (i < 0) return -i;
  return i < length ? i : 2 * (length - 1) - i;
};

type LineTask = {
  readonly image: ImageValue;
  readonly line: Float32Array;
  readonly from: number;
  readonly radius: number;
};

const mirrorLine = ({ image, line, from, radius }: LineTask): void => {
  const { width, channels, data } = image;
  line.set(data.subarray(from, from + width * channels), radius * channels);
  for (let x = 1; x <= radius; x++) {
    for (let c = 0; c < channels; c++) {
      line[(radius - x) * channels + c] = data[from + x * channels + c] as number;
      line[(radius + width - 1 + x) * channels + c] = data[
        from + (width - 1 - x) * channels + c
      ] as number;
    }
  }
};

/**
 * Rows first, then columns: the same picture but for rounding, at a fraction of the work. White is
 * made to come out exactly as the direct way has it, or flat white would fall a level when saved.
 * @internal
 */
export const convolveSeparably = (
  context: Context,
  image: ImageValue,
  kernel: Kernel,
): ImageValue => {
  const wide = newImage(context, image);
  const result = newImage(context, image);
  const flat = kernel.profile.reduce((sum, weight) => sum + weight, 0) ** 2;
  const white = kernel.weights.reduce((sum, weight) => Math.fround(sum + weight), 0);
  const parts = { ...kernel, gain: (white - kernel.own) / flat };
  eachRow(context, image, (row) => blurAcross({ image, result: wide, kernel: parts, row }));
  eachRow(context, image, (row) => blurDown({ image, wide, result, kernel: parts, row }));
  return result;
};

const blurAcross = ({ image, result, kernel, row }: RowTask): void => {
  const radius = (kernel.side - 1) / 2;
  const { width, channels } = image;
  const line = new Float32Array((width + 2 * radius) * channels);
  mirrorLine({ image, line, from: row * width * channels, radius });
  for (let i = 0; i < width * channels; i++) {
    let sum = 0;
    for (let k = 0; k < kernel.side; k++) {
      sum += (line[i + k * channels] as number) * (kernel.profile[k] as number);
    }
    result.data[row * width * channels + i] = sum;
  }
};

const blurDown = (task: RowTask & { readonly wide: ImageValue }): void => {
  const { image, wide, result, kernel, row } = task;
  const radius = (kernel.side - 1) / 2;
  const length = image.width * image.channels;
  const top = Math.floor(row / image.height) * image.height;
  const sums = new Float64Array(length);
  for (let k = 0; k < kernel.side; k++) {
    const from = (top + reflect((row % image.height) + k - radius, image.height)) * length;
    const weight = kernel.profile[k] as number;
    for (let i = 0; i < length; i++) {
      sums[i] = (sums[i] as number) + (wide.data[from + i] as number) * weight;
    }
  }
  for (let i = 0; i < length; i++) {
    const itself = kernel.own * (image.data[row * length + i] as number);
    result.data[row * length + i] = (sums[i] as number) * kernel.gain + itself;
  }
};
