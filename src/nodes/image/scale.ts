import { RESAMPLE_METHODS, resampleMethod, upscale } from '../resample/resample.ts';
import type { ImageValue, Inputs, NodeDef } from '../node.ts';
import {
  type Size,
  floatInput,
  imageInput,
  intInput,
  roundHalfEven,
  stringInput,
} from '../tensor.ts';

const COMMON = {
  category: 'image/upscaling',
  outputs: [{ type: 'IMAGE' }],
} as const;

const imageScale: NodeDef = {
  ...COMMON,
  name: 'ImageScale',
  displayName: 'Upscale Image',
  pythonModule: 'nodes',
  required: {
    image: ['IMAGE'],
    upscale_method: [RESAMPLE_METHODS],
    width: ['INT', { default: 512, min: 0, max: 16384, step: 1 }],
    height: ['INT', { default: 512, min: 0, max: 16384, step: 1 }],
    crop: [['disabled', 'center']],
  },
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const method = resampleMethod(stringInput(inputs, 'upscale_method'));
    const crop = stringInput(inputs, 'crop') === 'center' ? 'center' : 'disabled';
    const wanted = { width: intInput(inputs, 'width'), height: intInput(inputs, 'height') };
    if (wanted.width === 0 && wanted.height === 0) return { outputs: [image] };
    return { outputs: [upscale(context, image, { ...missingSide(image, wanted), method, crop })] };
  },
};

/** A side of 0 follows from the other one and the picture's proportions. */
const missingSide = (image: ImageValue, { width, height }: Size): Size => ({
  width: width || Math.max(1, roundHalfEven((image.width * height) / image.height)),
  height: height || Math.max(1, roundHalfEven((image.height * width) / image.width)),
});

/** Both sides times a factor, each rounded on its own. */
const scaledSize = (image: ImageValue, factor: number): Size => ({
  width: roundHalfEven(image.width * factor),
  height: roundHalfEven(image.height * factor),
});

/** Scales to the size that the inputs ask for, by the method they name. */
const scaleTo =
  (sizeOf: (image: ImageValue, inputs: Inputs) => Size): NodeDef['run'] =>
  (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const method = resampleMethod(stringInput(inputs, 'upscale_method'));
    const size = sizeOf(image, inputs);
    return { outputs: [upscale(context, image, { ...size, method, crop: 'disabled' })] };
  };

const imageScaleBy: NodeDef = {
  ...COMMON,
  name: 'ImageScaleBy',
  displayName: 'Upscale Image By',
  pythonModule: 'nodes',
  required: {
    image: ['IMAGE'],
    upscale_method: [RESAMPLE_METHODS],
    scale_by: ['FLOAT', { default: 1.0, min: 0.01, max: 8.0, step: 0.01 }],
  },
  run: scaleTo((image, inputs) => scaledSize(image, floatInput(inputs, 'scale_by'))),
};

const imageScaleToTotalPixels: NodeDef = {
  ...COMMON,
  name: 'ImageScaleToTotalPixels',
  pythonModule: 'comfy_extras.nodes_post_processing',
  style: 'v3',
  required: {
    image: ['IMAGE', {}],
    upscale_method: ['COMBO', { multiselect: false, options: RESAMPLE_METHODS }],
    megapixels: ['FLOAT', { default: 1.0, min: 0.01, max: 16.0, step: 0.01 }],
  },
  run: scaleTo((image, inputs) => {
    const total = Math.trunc(floatInput(inputs, 'megapixels') * 1024 * 1024);
    return scaledSize(image, Math.sqrt(total / (image.width * image.height)));
  }),
};

const imageScaleToMaxDimension: NodeDef = {
  ...COMMON,
  name: 'ImageScaleToMaxDimension',
  pythonModule: 'comfy_extras.nodes_images',
  required: {
    image: ['IMAGE'],
    // v1 lists `bilinear` twice, and so does its answer to /object_info.
    upscale_method: [['area', 'lanczos', 'bilinear', 'nearest-exact', 'bilinear', 'bicubic']],
    largest_size: ['INT', { default: 512, min: 0, max: 16384, step: 1 }],
  },
  run: scaleTo((image, inputs) => fittedSize(image, intInput(inputs, 'largest_size'))),
};

const fittedSize = ({ width, height }: Size, largest: number): Size => ({
  width: width >= height ? largest : roundHalfEven((width / height) * largest),
  height: height >= width ? largest : roundHalfEven((height / width) * largest),
});

/** Everything that changes a picture's size by resampling. */
export const SCALE_NODES: readonly NodeDef[] = [
  imageScale,
  imageScaleBy,
  imageScaleToTotalPixels,
  imageScaleToMaxDimension,
];
