import { RESAMPLE_METHODS, upscale } from '../resample/resample.ts';
import type { Pixels, NodeContext, NodeDef, NodeResult } from '../node.ts';
import { type Size, roundHalfEven } from '../tensor.ts';
import { combo, typedNode } from '../typed-node.ts';

const COMMON = {
  category: 'image/upscaling',
  pythonModule: 'nodes',
  outputs: [{ type: 'IMAGE' }],
} as const;

/** The nodes that change a picture's size by resampling. */
export const SCALE_NODES: readonly NodeDef[] = [
  typedNode({
    ...COMMON,
    name: 'ImageScale',
    displayName: 'Upscale Image',
    required: {
      image: ['IMAGE'],
      upscale_method: [RESAMPLE_METHODS],
      width: ['INT', { default: 512, min: 0, max: 16384, step: 1 }],
      height: ['INT', { default: 512, min: 0, max: 16384, step: 1 }],
      crop: [['disabled', 'center']],
    },
    run({ image, upscale_method: method, width, height, crop }, context) {
      if (width === 0 && height === 0) return { outputs: [image] };
      const size = missingSide(image, { width, height });
      return { outputs: [upscale(context, image, { ...size, method, crop })] };
    },
  }),
  typedNode({
    ...COMMON,
    name: 'ImageScaleBy',
    displayName: 'Upscale Image By',
    required: {
      image: ['IMAGE'],
      upscale_method: [RESAMPLE_METHODS],
      scale_by: ['FLOAT', { default: 1.0, min: 0.01, max: 8.0, step: 0.01 }],
    },
    run: (inputs, context) => scaleTo(context, inputs, scaledSize(inputs.image, inputs.scale_by)),
  }),
  typedNode({
    ...COMMON,
    name: 'ImageScaleToTotalPixels',
    displayName: 'Scale Image to Total Pixels',
    pythonModule: 'comfy_extras.nodes_post_processing',
    style: 'v3',
    required: {
      image: ['IMAGE', {}],
      upscale_method: combo(RESAMPLE_METHODS),
      megapixels: ['FLOAT', { default: 1.0, min: 0.01, max: 16.0, step: 0.01 }],
      resolution_steps: ['INT', { advanced: true, default: 1, min: 1, max: 256 }],
    },
    run(inputs, context) {
      const { image } = inputs;
      const factor = pixelsFactor(image, inputs.megapixels * MEGAPIXEL);
      return scaleTo(context, inputs, scaledSize(image, factor, inputs.resolution_steps));
    },
  }),
  typedNode({
    ...COMMON,
    name: 'ImageScaleToMaxDimension',
    displayName: 'Scale Image to Max Dimension',
    pythonModule: 'comfy_extras.nodes_images',
    style: 'v3',
    required: {
      image: ['IMAGE', {}],
      // v1 lists `bilinear` twice, and so does its answer to /object_info.
      upscale_method: combo([
        'area',
        'lanczos',
        'bilinear',
        'nearest-exact',
        'bilinear',
        'bicubic',
      ]),
      largest_size: ['INT', { default: 512, min: 0, max: 16384, step: 1 }],
    },
    run: (inputs, context) =>
      scaleTo(context, inputs, fittedSize(inputs.image, inputs.largest_size)),
  }),
];

/** Returns both sides. A side of 0 follows from the other one and the picture's proportions. */
export const missingSide = (image: Size, { width, height }: Size): Size => ({
  width: width || Math.max(1, roundHalfEven((image.width * height) / image.height)),
  height: height || Math.max(1, roundHalfEven((image.height * width) / image.width)),
});

/** Returns both sides times a factor, each rounded separately to a multiple of `step`. */
export const scaledSize = (image: Size, factor: number, step = 1): Size => ({
  width: roundHalfEven((image.width * factor) / step) * step,
  height: roundHalfEven((image.height * factor) / step) * step,
});

type Scaling = { readonly image: Pixels; readonly upscale_method: string };

/** Scales to a size by the method that the inputs name. */
const scaleTo = (
  context: NodeContext,
  { image, upscale_method: method }: Scaling,
  size: Size,
): NodeResult => ({ outputs: [upscale(context, image, { ...size, method })] });

export const MEGAPIXEL = 1024 * 1024;

/** Returns the factor for both sides that leads to so many pixels. */
export const pixelsFactor = ({ width, height }: Size, pixels: number): number =>
  Math.sqrt(pixels / (width * height));

export const fittedSize = ({ width, height }: Size, largest: number): Size => ({
  width: width >= height ? largest : roundHalfEven((width / height) * largest),
  height: height >= width ? largest : roundHalfEven((height / width) * largest),
});
