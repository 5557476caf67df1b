import { type ImageValue, NodeFailure } from '../node.ts';
import { type LoopContext, eachRow, newImage } from '../tensor.ts';

/**
 * A square kernel: `gain` × profile × profile, plus `own` for the pixel itself. The weights of the
 * profile add up to 1.
 */
type Kernel = {
  readonly profile: Float64Array;
  readonly gain: number;
  readonly own: number;
};

/**
 * Returns v1's Gaussian. Distances run from -1 to 1 over the whole kernel, so sigma is in units of
 * the radius.
 */
export const gaussian = (radius: number, sigma: number): Kernel => {
  const weights = Float64Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp(-((i / radius - 1) ** 2) / (2 * sigma * sigma)),
  );
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return { profile: weights.map((weight) => weight / sum), gain: 1, own: 0 };
};

/** Returns the kernel that adds `alpha` times ten of the part that blurring removes. */
export const sharpening = ({ profile }: Kernel, alpha: number): Kernel => ({
  profile,
  gain: -alpha * 10,
  own: 1 + alpha * 10,
});

const radiusOf = ({ profile }: Kernel): number => (profile.length - 1) / 2;

/**
 * Weighs the neighbourhood of every pixel: across rows, then down columns. It is mirrored at the
 * borders, without repeating the edge pixel.
 */
export const convolve = (context: LoopContext, image: ImageValue, kernel: Kernel): ImageValue => {
  const radius = radiusOf(kernel);
  if (radius >= image.width || radius >= image.height) {
    const wanted = `a picture larger than ${radius} pixels on both sides`;
    const size = `${image.width} × ${image.height}`;
    const message = `A radius of ${radius} needs ${wanted}; this one is ${size}`;
    throw new NodeFailure('RuntimeError', message);
  }
  const wide = newImage(context, image);
  const result = newImage(context, image);
  eachRow(context, image, (row) => blurAcross(image, wide, kernel, row));
  eachRow(context, image, (row) => blurDown([image, wide], result, kernel, row));
  return result;
};

const reflect = (i: number, length: number): number => {
  if (i < 0) return -i;
  return i < length ? i : 2 * (length - 1) - i;
};

const mirrorLine = (
  { width, channels, data }: ImageValue,
  line: Float32Array,
  from: number,
  radius: number,
): void => {
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

const blurAcross = (image: ImageValue, result: ImageValue, kernel: Kernel, row: number): void => {
  const radius = radiusOf(kernel);
  const { width, channels } = image;
  const line = new Float32Array((width + 2 * radius) * channels);
  mirrorLine(image, line, row * width * channels, radius);
  for (let i = 0; i < width * channels; i++) {
    let sum = 0;
    for (let k = 0; k < kernel.profile.length; k++) {
      sum += (line[i + k * channels] as number) * (kernel.profile[k] as number);
    }
    result.data[row * width * channels + i] = sum;
  }
};

const blurDown = (
  [image, wide]: readonly [ImageValue, ImageValue],
  result: ImageValue,
  kernel: Kernel,
  row: number,
): void => {
  const radius = radiusOf(kernel);
  const length = image.width * image.channels;
  const top = Math.floor(row / image.height) * image.height;
  const sums = new Float64Array(length);
  for (let k = 0; k < kernel.profile.length; k++) {
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
