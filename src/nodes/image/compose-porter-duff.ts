import { NodeFailure, type ImageValue } from '../node.ts';
import { fitted, fittedMask } from '../resample/resample.ts';
import { newImage, newMask } from '../tensor.ts';
import { entryOf, typedNode } from '../typed-node.ts';

const { fround, max, min } = Math;

/** The share of a pixel that each of the two layers covers. */
type Coverage = { source: number; destination: number };

type Mode = {
  /** Returns the resulting coverage. */
  readonly alpha: (source: number, destination: number) => number;
  /**
   * Returns the resulting level of one channel. Levels are multiplied by their layer's coverage
   * already.
   */
  readonly level: (source: number, destination: number, coverage: Coverage) => number;
};

const clip = (value: number): number => min(1, max(0, value));

const complement = (alpha: number): number => fround(1 - alpha);

const product = (one: number, other: number): number => fround(one * other);

const sum = (one: number, other: number): number => fround(one + other);

/** Returns the coverage of both layers together, counting the shared part once. */
const union = (one: number, other: number): number => fround(sum(one, other) - product(one, other));

/** Returns the level of each layer where the other one is not. */
const disjoint: Mode['level'] = (source, destination, coverage) =>
  sum(
    product(complement(coverage.destination), source),
    product(complement(coverage.source), destination),
  );

const overlay: Mode['level'] = (source, destination, coverage) => {
  if (2 * destination < coverage.destination) return product(fround(2 * source), destination);
  const shades = fround(2 * fround(coverage.destination - source));
  const both = product(coverage.source, coverage.destination);
  return fround(both - product(shades, fround(coverage.source - destination)));
};

/**
 * The Porter–Duff operators and blend modes under their usual names, in single precision
 * throughout.
 */
const MODES: { readonly [name: string]: Mode } = {
  ADD: { alpha: (s, d) => clip(sum(s, d)), level: (s, d) => clip(sum(s, d)) },
  CLEAR: { alpha: () => 0, level: () => 0 },
  DARKEN: { alpha: union, level: (s, d, coverage) => sum(disjoint(s, d, coverage), min(s, d)) },
  DST: { alpha: (_s, d) => d, level: (_s, d) => d },
  DST_ATOP: {
    alpha: (s) => s,
    level: (s, d, { source, destination }) =>
      sum(product(source, d), product(complement(destination), s)),
  },
  DST_IN: { alpha: product, level: (_s, d, { source }) => product(d, source) },
  DST_OUT: {
    alpha: (s, d) => product(complement(s), d),
    level: (_s, d, { source }) => product(complement(source), d),
  },
  DST_OVER: {
    alpha: (s, d) => sum(d, product(complement(d), s)),
    level: (s, d, { destination }) => sum(d, product(complement(destination), s)),
  },
  LIGHTEN: { alpha: union, level: (s, d, coverage) => sum(disjoint(s, d, coverage), max(s, d)) },
  MULTIPLY: { alpha: product, level: product },
  OVERLAY: { alpha: union, level: overlay },
  SCREEN: { alpha: union, level: union },
  SRC: { alpha: (s) => s, level: (s) => s },
  SRC_ATOP: {
    alpha: (_s, d) => d,
    level: (s, d, { source, destination }) =>
      sum(product(destination, s), product(complement(source), d)),
  },
  SRC_IN: { alpha: product, level: (s, _d, { destination }) => product(s, destination) },
  SRC_OUT: {
    alpha: (s, d) => product(complement(d), s),
    level: (s, _d, { destination }) => product(complement(destination), s),
  },
  SRC_OVER: {
    alpha: (s, d) => sum(s, product(complement(s), d)),
    level: (s, d, { source }) => sum(s, product(complement(source), d)),
  },
  XOR: {
    alpha: (s, d) => sum(product(complement(d), s), product(complement(s), d)),
    level: disjoint,
  },
};

/** The names in v1's order. */
const MODE_NAMES = Object.keys(MODES);

/** Below this coverage a pixel has no colour. */
const LEAST_ALPHA = fround(1e-5);

/** Composes two pictures whose masks say where they are transparent. */
export const porterDuffImageComposite = typedNode({
  name: 'PorterDuffImageComposite',
  displayName: 'Porter-Duff Image Composite',
  category: 'mask/compositing',
  pythonModule: 'comfy_extras.nodes_compositing',
  style: 'v3',
  required: {
    source: ['IMAGE', {}],
    source_alpha: ['MASK', {}],
    destination: ['IMAGE', {}],
    destination_alpha: ['MASK', {}],
    mode: ['COMBO', { default: 'DST', multiselect: false, options: MODE_NAMES }],
  },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  run({ destination, ...inputs }, context) {
    const mode = entryOf(MODES, inputs.mode, ['KeyError', 'There is no compositing mode']);
    requireSameChannels(inputs.source, destination);
    const source = fitted(context, inputs.source, destination, FIT);
    const sourceMask = fittedMask(context, inputs.source_alpha, destination, FIT);
    const mask = fittedMask(context, inputs.destination_alpha, destination, FIT);
    // The shortest batch decides the number of resulting pictures.
    const batch = Math.min(...[source, sourceMask, destination, mask].map((one) => one.batch));
    const image = newImage(context, { ...destination, batch });
    const alpha = newMask(context, image);
    const { channels, width } = image;
    const [upper, lower] = [source.data, destination.data];
    const cover: Coverage = { source: 0, destination: 0 };
    for (let pixel = 0; pixel < alpha.data.length; pixel++) {
      if (pixel % width === 0) context.check();
      cover.source = fround(1 - (sourceMask.data[pixel] as number));
      cover.destination = fround(1 - (mask.data[pixel] as number));
      const covered = mode.alpha(cover.source, cover.destination);
      alpha.data[pixel] = 1 - covered;
      if (covered <= LEAST_ALPHA) continue;
      for (let i = pixel * channels; i < (pixel + 1) * channels; i++) {
        const above = fround((upper[i] as number) * cover.source);
        const below = fround((lower[i] as number) * cover.destination);
        const level = fround(mode.level(above, below, cover) / covered);
        image.data[i] = Math.min(1, Math.max(0, level));
      }
    }
    return { outputs: [image, alpha] };
  },
});

const requireSameChannels = (source: ImageValue, destination: ImageValue): void => {
  if (source.channels === destination.channels) return;
  const counts = `source has ${source.channels} channels, destination ${destination.channels}`;
  throw new NodeFailure('AssertionError', `${counts}: they must have as many`);
};

/** v1 scales everything to the destination picture, bicubic, and keeps the middle. */
const FIT = { method: 'bicubic', crop: 'center' } as const;
