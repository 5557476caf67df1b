import { type Pixels, type NodeContext, fail } from '../node.ts';
import { type AxisOf, axisOf } from '../resample/axis.ts';
import { resampleBy } from '../resample/resample.ts';

/**
 * Blurs with v1's Gaussian: across rows, then down columns. Numbers that come through links were
 * not checked before.
 */
export const blur = (
  context: NodeContext,
  image: Pixels,
  { radius, sigma }: { readonly radius: number; readonly sigma: number },
): Pixels => {
  if (radius >= image.width || radius >= image.height) {
    const wanted = `a picture larger than ${radius} pixels on both sides`;
    const size = `${image.width} × ${image.height}`;
    return fail('RuntimeError', `A radius of ${radius} needs ${wanted}; this one is ${size}`);
  }
  return resampleBy(blurAxis(gaussian(radius, sigma)))(context, image, image);
};

/**
 * Returns weights that add up to 1. Distances run from -1 to 1 over the whole kernel, so sigma is in
 * units of the radius.
 */
const gaussian = (radius: number, sigma: number): readonly number[] => {
  const weights = Array.from({ length: 2 * radius + 1 }, (_, i) =>
    Math.exp(-((i / radius - 1) ** 2) / (2 * sigma * sigma)),
  );
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
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
