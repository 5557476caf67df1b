import type { Resampler } from './resampler.ts';
import { resampleBicubic, resampleBilinear } from './linear.ts';
import { resampleLanczos } from './lanczos.ts';
import { type ImageValue, type MaskValue, NodeFailure } from '../node.ts';
import { asMask, asPicture, cutOut } from '../image/region.ts';
import { type LoopContext, type Size, eachRow, newImage, roundHalfEven } from '../tensor.ts';

type Window = { readonly start: number; readonly end: number };

/** Makes every target pixel the mean of the whole source pixels that it touches (v1's `area`). */
const resampleArea: Resampler = (context, image, size) => {
  const scaled = newImage(context, { ...image, ...size });
  const columns = windows(image.width, size.width);
  const rows = windows(image.height, size.height);
  const { channels } = image;
  eachRow(context, scaled, (row) => {
    const top = Math.floor(row / size.height) * image.height;
    const { start, end } = rows[row % size.height] as Window;
    const height = end - start;
    for (let i = 0; i < size.width * channels; i++) {
      const column = columns[Math.floor(i / channels)] as Window;
      const width = column.end - column.start;
      const first = ((top + start) * image.width + column.start) * channels + (i % channels);
      let sum = 0;
      for (let y = 0, line = first; y < height; y++, line += image.width * channels) {
        for (let at = line; at < line + width * channels; at += channels) {
          sum = Math.fround(sum + (image.data[at] as number));
        }
      }
      // Two divisions, each rounded to single precision, as in the original's pooling.
      scaled.data[row * size.width * channels + i] = Math.fround(sum / height) / width;
    }
  });
  return scaled;
};

const windows = (source: number, target: number): readonly Window[] =>
  Array.from({ length: target }, (_, i) => ({
    start: Math.floor((i * source) / target),
    end: Math.ceil(((i + 1) * source) / target),
  }));

/** Makes every target pixel the source pixel in which its centre is (v1's `nearest-exact`). */
const resampleNearest: Resampler = (context, image, size) => {
  const scaled = newImage(context, { ...image, ...size });
  const columns = nearestIndices(image.width, size.width);
  const rows = nearestIndices(image.height, size.height);
  const { channels } = image;
  eachRow(context, scaled, (row) => {
    const sourceRow =
      Math.floor(row / size.height) * image.height + (rows[row % size.height] as number);
    for (let x = 0; x < size.width; x++) {
      const from = (sourceRow * image.width + (columns[x] as number)) * channels;
      const to = (row * size.width + x) * channels;
      for (let c = 0; c < channels; c++) scaled.data[to + c] = image.data[from + c] as number;
    }
  });
  return scaled;
};

/**
 * Returns the indexes in single precision: at half-way points the rounding decides which pixel is
 * taken.
 */
const nearestIndices = (source: number, target: number): Int32Array => {
  const scale = Math.fround(source / target);
  return Int32Array.from({ length: target }, (_, i) =>
    Math.min(source - 1, Math.floor(Math.fround((i + 0.5) * scale))),
  );
};

const RESAMPLERS = {
  'nearest-exact': resampleNearest,
  bilinear: resampleBilinear,
  area: resampleArea,
  bicubic: resampleBicubic,
  lanczos: resampleLanczos,
} as const satisfies { readonly [method: string]: Resampler };

export type ResampleMethod = keyof typeof RESAMPLERS;

/** v1's methods, in the order in which its nodes list them. */
export const RESAMPLE_METHODS = Object.keys(RESAMPLERS) as ResampleMethod[];

/** Returns the method of that name. In v1, unknown words can reach the node through links. */
export const resampleMethod = (word: string): ResampleMethod => {
  if (Object.hasOwn(RESAMPLERS, word)) return word as ResampleMethod;
  throw new NodeFailure('NotImplementedError', `Unknown resampling method: ${word}`);
};

export type UpscaleOptions = Size & {
  readonly method: ResampleMethod;
  readonly crop: 'disabled' | 'center';
};

/**
 * Scales a picture to exactly that size as v1 does. If asked, it is first cut to the new
 * proportions.
 */
export const upscale = (
  context: LoopContext,
  image: ImageValue,
  options: UpscaleOptions,
): ImageValue => {
  const { width, height } = options;
  // NaN is refused here, too.
  if (!(width >= 1 && height >= 1)) {
    const message = `Cannot scale to ${width} × ${height}: both sides must be at least 1`;
    throw new NodeFailure('RuntimeError', message);
  }
  const source = options.crop === 'center' ? cropToAspect(context, image, options) : image;
  return RESAMPLERS[options.method](context, source, options);
};

type Fit = Omit<UpscaleOptions, keyof Size>;

/** Returns a picture in the size of another one; the same object if it has that size. */
export const fitted = (
  context: LoopContext,
  image: ImageValue,
  { width, height }: Size,
  fit: Fit,
): ImageValue =>
  image.width === width && image.height === height
    ? image
    : upscale(context, image, { ...fit, width, height });

/** Does what `fitted` does, for masks. */
export const fittedMask = (
  context: LoopContext,
  mask: MaskValue,
  size: Size,
  fit: Fit,
): MaskValue => asMask(fitted(context, asPicture(mask), size, fit));

const cropToAspect: Resampler = (context, image, { width, height }) => {
  const [before, after] = [image.width / image.height, width / height];
  const x = before > after ? roundHalfEven((image.width - image.width * (after / before)) / 2) : 0;
  const y =
    before < after ? roundHalfEven((image.height - image.height * (before / after)) / 2) : 0;
  if (x === 0 && y === 0) return image;
  return cutOut(context, image, {
    columns: { start: x, end: image.width - x },
    rows: { start: y, end: image.height - y },
  });
};
