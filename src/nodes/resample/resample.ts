import { type AxisOf, areaAxis, bicubicAxis, bilinearAxis, nearestAxis } from './axis.ts';
import { resampleLanczos } from './lanczos.ts';
import { scaleColumns, scaleRows } from './scale.ts';
import { type NodeContext, fail, type Pixels } from '../node.ts';
import { cutOut } from '../image/region.ts';
import { entryOf } from '../typed-node.ts';
import { type Size, frameOf, newPixels, roundHalfEven } from '../tensor.ts';

/** Scales pictures or masks to exactly that size. */
type Resampler = (context: NodeContext, image: Pixels, size: Size) => Pixels;

/** Scales pictures by a table for each side. */
export const resampleBy =
  (axisOf: AxisOf): Resampler =>
  (context, image, size) => {
    const wide = newPixels(context, { ...image, batch: 1, width: size.width });
    const scaled = newPixels(context, { ...image, ...size });
    const columns = axisOf(image.width, size.width);
    const rows = axisOf(image.height, size.height);
    for (let index = 0; index < image.batch; index++) {
      const source = { ...image, data: frameOf(image, index) };
      const target = { ...scaled, data: frameOf(scaled, index) };
      scaleRows(context, source, wide, columns);
      scaleColumns(context, wide, target, rows);
    }
    return scaled;
  };

const RESAMPLERS: { readonly [method: string]: Resampler } = {
  'nearest-exact': resampleBy(nearestAxis),
  bilinear: resampleBy(bilinearAxis),
  area: resampleBy(areaAxis),
  bicubic: resampleBy(bicubicAxis),
  lanczos: resampleLanczos,
};

/** v1's methods, in the order in which its nodes list them. */
export const RESAMPLE_METHODS = Object.keys(RESAMPLERS);

/** `crop`: with `center` a picture is first cut to the new proportions. */
export type UpscaleOptions = Size & { readonly method: string; readonly crop?: string };

/** Scales a picture to exactly that size as v1 does. */
export const upscale = (context: NodeContext, image: Pixels, options: UpscaleOptions): Pixels => {
  const failure = ['NotImplementedError', 'Unknown resampling method:'] as const;
  const resample = entryOf(RESAMPLERS, options.method, failure);
  const source = options.crop === 'center' ? cropToAspect(context, image, options) : image;
  requirePixels(source, options);
  return resample(context, source, options);
};

/** Only `area` makes pictures without pixels, and only `lanczos` reads them, as black. */
const requirePixels = (source: Pixels, { method, width, height }: UpscaleOptions): void => {
  // NaN is refused here, too.
  const isMade = Math.min(width, height) >= (method === 'area' ? 0 : 1);
  if (isMade && (method === 'lanczos' || source.data.length > 0)) return;
  const type = method === 'lanczos' ? 'ValueError' : 'RuntimeError';
  const sizes = `${source.width} × ${source.height} to ${width} × ${height}`;
  return fail(type, `Cannot scale ${sizes}: all sides must be at least 1`);
};

/** Returns a picture in the size of another one; the same object if it has that size. */
export const fitted = (
  context: NodeContext,
  image: Pixels,
  { width, height }: Size,
  fit: Omit<UpscaleOptions, keyof Size>,
): Pixels =>
  image.width === width && image.height === height
    ? image
    : upscale(context, image, { ...fit, width, height });

const cropToAspect: Resampler = (context, image, { width, height }) => {
  const [before, after] = [image.width / image.height, width / height];
  const x = before > after ? roundHalfEven((image.width - image.width * (after / before)) / 2) : 0;
  const y =
    before < after ? roundHalfEven((image.height - image.height * (before / after)) / 2) : 0;
  if (x === 0 && y === 0) return image;
  return cutOut(context, image, { x, y, width: image.width - 2 * x, height: image.height - 2 * y });
};
