import { type Pixels, type NodeContext, NodeFailure } from '../node.ts';
import { type AxisOf, axisOf } from '../resample/axis.ts';
import { resampleBy } from '../resample/resample.ts';

/**
 * A square kernel: `gain` × profile × profile, plus `own` for the pixel itself. The weights of the
 * profile add up to 1.
 */
type Kernel = {
  readonly profile: readonly number[];
  readonly gain: number;
  readonly own: number;
};

/**
 * Returns v1's Gaussian. Distances run from -1 to 1 over the whole kernel, so sigma is in units of
 * the radius.
 */
export const gaussian = (radius: number, sigma: number): Kernel => {
  const weights = Array.from({ length: 2 * radius + 1 }, (_, i) =>
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

/** Weighs the neighbourhood of every pixel: across rows, then down columns. */
export const convolve = (context: NodeContext, image: Pixels, kernel: Kernel): Pixels => {
  const { profile, gain, own } = kernel;
  const radius = (profile.length - 1) / 2;
  if (radius >= image.width || radius >= image.height) {
    const wanted = `a picture larger than ${radius} pixels on both sides`;
    const size = `${image.width} × ${image.height}`;
    const message = `A radius of ${radius} needs ${wanted}; this one is ${size}`;
    throw new NodeFailure('RuntimeError', message);
  }
  const result = resampleBy(blurAxis(profile))(context, image, image);
  for (let i = 0; i < result.data.length; i++)
    result.data[i] = (result.data[i] as number) * gain + own * (image.data[i] as number);
  return result;
};

/** Mirrors the picture at its borders, without repeating the edge pixel. */
const blurAxis =
  (profile: readonly number[]): AxisOf =>
  (length) => {
    const radius = (profile.length - 1) / 2;
    return axisOf(length, (i) =>
      profile.map((weight, tap) => [reflect(i + tap - radius, length), weight]),
    );
  };

const reflect = (i: number, length: number): number => {
  if (i < 0) return -i;
  return i < length ? i : 2 * (length - 1) - i;
};
