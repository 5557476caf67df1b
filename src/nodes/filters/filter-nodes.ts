import { type NodeDef, type Pixels, type NodeContext, fail } from '../node.ts';
import { eachRow, newPixels } from '../tensor.ts';
import { combo, entryOf, typedNode } from '../typed-node.ts';
import { type AxisOf, axisOf } from '../resample/axis.ts';
import { inverted, requireChannels } from '../image/region.ts';
import { fitted, resampleBy } from '../resample/resample.ts';

const POSTPROCESSING = {
  category: 'image/filters',
  pythonModule: 'comfy_extras.nodes_post_processing',
  style: 'v3',
  outputs: [{ type: 'IMAGE' }],
} as const;

/** Mixes two levels. */
type Mix = (a: number, b: number) => number;

const screen: Mix = (a, b) => 1 - (1 - a) * (1 - b);

const overlay: Mix = (a, b) => (a <= 0.5 ? 2 * a * b : 1 - 2 * (1 - a) * (1 - b));

const softLight: Mix = (a, b) =>
  b > 0.5 ? a + (2 * b - 1) * (softLightCurve(a) - a) : a - (1 - 2 * b) * a * (1 - a);

const softLightCurve = (a: number): number =>
  a <= 0.25 ? ((16 * a - 12) * a + 4) * a : Math.sqrt(a);

/** v1's blend modes in its order. `difference` is signed; values below 0 are cut off. */
const MIXES: { readonly [mode: string]: Mix } = {
  normal: (_a, b) => b,
  multiply: (a, b) => a * b,
  screen,
  overlay,
  soft_light: softLight,
  difference: (a, b) => a - b,
};

const requireSameBatch = (first: Pixels, second: Pixels): number => {
  const [a, b] = [first.batch, second.batch];
  if (a === b || a === 1 || b === 1) return Math.max(a, b);
  return fail('RuntimeError', `Cannot blend a batch of ${a} with a batch of ${b}`);
};

const blend = (
  context: NodeContext,
  [first, second]: readonly [Pixels, Pixels],
  mix: Mix,
  factor: number,
): Pixels => {
  const result = newPixels(context, { ...first, batch: requireSameBatch(first, second) });
  const length = first.width * first.channels;
  eachRow(context, result, (row) => {
    const [line, frame] = [row % result.height, Math.floor(row / result.height)];
    const a = ((frame % first.batch) * first.height + line) * length;
    const b = ((frame % second.batch) * second.height + line) * second.width * second.channels;
    for (let i = 0; i < length; i++) {
      const channel = i % first.channels;
      const one = first.data[a + i] as number;
      const other = second.data[
        b + ((i - channel) / first.channels) * second.channels + channel
      ] as number;
      const level = one * (1 - factor) + mix(one, other) * factor;
      result.data[row * length + i] = Math.min(Math.max(level, 0), 1);
    }
  });
  return result;
};

/** The nodes that change a picture's colours and keep its size. */
export const FILTER_NODES: readonly NodeDef[] = [
  typedNode({
    name: 'ImageInvert',
    displayName: 'Invert Image Colors',
    category: 'image/color',
    pythonModule: 'nodes',
    required: { image: ['IMAGE'] },
    outputs: [{ type: 'IMAGE' }],
    // Alpha is inverted too: v1 makes no exception for it.
    run: ({ image }, context) => ({ outputs: [inverted(context, image)] }),
  }),
  /** Mixes two pictures. */
  typedNode({
    ...POSTPROCESSING,
    name: 'ImageBlend',
    displayName: 'Blend Images',
    required: {
      image1: ['IMAGE', {}],
      image2: ['IMAGE', {}],
      blend_factor: ['FLOAT', { default: 0.5, min: 0.0, max: 1.0, step: 0.01 }],
      blend_mode: combo(Object.keys(MIXES)),
    },
    run({ image1: first, image2, blend_factor: factor, blend_mode: mode }, context) {
      const mix = entryOf(MIXES, mode, ['ValueError', 'Unsupported blend mode:']);
      requireChannels(['image1', first], ['image2', image2]);
      // v1 scales the second picture to the first, bicubic, and keeps its middle.
      const second = fitted(context, image2, first, { method: 'bicubic', crop: 'center' });
      return { outputs: [blend(context, [first, second], mix, factor)] };
    },
  }),
  /** Blurs with a Gaussian kernel. */
  typedNode({
    ...POSTPROCESSING,
    name: 'ImageBlur',
    displayName: 'Blur Image',
    required: {
      image: ['IMAGE', {}],
      blur_radius: ['INT', { default: 1, min: 1, max: 31, step: 1 }],
      sigma: ['FLOAT', { default: 1.0, min: 0.1, max: 10.0, step: 0.1 }],
    },
    run({ image, blur_radius: radius, sigma }, context) {
      if (radius === 0) return { outputs: [image] };
      return { outputs: [blur(context, image, { radius, sigma })] };
    },
  }),
  /** Sharpens: adds `alpha` times ten of what blurring removes, and clips. */
  typedNode({
    ...POSTPROCESSING,
    name: 'ImageSharpen',
    displayName: 'Sharpen Image',
    required: {
      image: ['IMAGE', {}],
      sharpen_radius: ['INT', { advanced: true, default: 1, min: 1, max: 31, step: 1 }],
      sigma: ['FLOAT', { advanced: true, default: 1.0, min: 0.1, max: 10.0, step: 0.01 }],
      alpha: ['FLOAT', { advanced: true, default: 1.0, min: 0.0, max: 5.0, step: 0.01 }],
    },
    run({ image, sharpen_radius: radius, sigma, alpha }, context) {
      if (radius === 0) return { outputs: [image] };
      const result = blur(context, image, { radius, sigma });
      const gain = alpha * 10;
      for (let i = 0; i < result.data.length; i++) {
        const level = (image.data[i] as number) * (1 + gain) - (result.data[i] as number) * gain;
        result.data[i] = Math.min(Math.max(level, 0), 1);
      }
      return { outputs: [result] };
    },
  }),
];

/**
 * Blurs with v1's Gaussian: across rows, then down columns. Numbers that come through links were
 * not checked before.
 */
const blur = (
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
