import type { ResampleContext, Size } from './resample-context.ts';
import { resampleArea } from './area.ts';
import { resampleBicubic, resampleBilinear } from './linear.ts';
import { resampleLanczos } from './lanczos.ts';
import { resampleNearest } from './nearest.ts';
import { type ImageValue, type MaskValue, NodeFailure } from '../node.ts';
import { asMask, asPicture, cutOut } from '../image/region.ts';
import { roundHalfEven } from '../tensor.ts';

type Resampler = (context: ResampleContext, image: ImageValue, size: Size) => ImageValue;

const RESAMPLERS = {
  'nearest-exact': resampleNearest,
  bilinear: resampleBilinear,
  area: resampleArea,
  bicubic: resampleBicubic,
  lanczos: resampleLanczos,
} as const satisfies { readonly [method: string]: Resampler };

export type ResampleMethod = keyof typeof RESAMPLERS;

/** v1's methods in the order its nodes list them. */
export const RESAMPLE_METHODS = Object.keys(RESAMPLERS) as ResampleMethod[];

/** The method of that name; v1 lets unknown words reach the node through links. */
export const resampleMethod = (word: string): ResampleMethod => {
  if (Object.hasOwn(RESAMPLERS, word)) return word as ResampleMethod;
  throw new NodeFailure('NotImplementedError', `Unknown resampling method: ${word}`);
};

export type UpscaleOptions = Size & {
  readonly method: ResampleMethod;
  readonly crop: 'disabled' | 'center';
};

/** v1's scaling of a picture to exactly that size, after cutting it to the new proportions if asked. */
export const upscale = (
  context: ResampleContext,
  image: ImageValue,
  options: UpscaleOptions,
): ImageValue => {
  if (options.width < 1 || options.height < 1) {
    throw new NodeFailure(
      'RuntimeError',
      `Cannot scale to ${options.width} × ${options.height}: both sides must be at least 1`,
    );
  }
  const source = options.crop === 'center' ? cropToAspect(context, image, options) : image;
  return RESAMPLERS[options.method](context, source, options);
};

type Fit = Omit<UpscaleOptions, keyof Size>;

/** A picture at the size of another one; it is itself where it has that size. */
export const fitted = (
  context: ResampleContext,
  image: ImageValue,
  { width, height }: Size,
  fit: Fit,
): ImageValue =>
  image.width === width && image.height === height
    ? image
    : upscale(context, image, { ...fit, width, height });

/** `fitted` for masks. */
export const fittedMask = (
  context: ResampleContext,
  mask: MaskValue,
  size: Size,
  fit: Fit,
): MaskValue => asMask(fitted(context, asPicture(mask), size, fit));

const cropToAspect = (
  context: ResampleContext,
  image: ImageValue,
  { width, height }: Size,
): ImageValue => {
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
