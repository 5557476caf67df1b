import { convolve } from './convolve.ts';
import { gaussian, sharpening } from './kernel.ts';
import type { NodeDef } from '../node.ts';
import { floatInput, imageInput, intInput } from '../tensor.ts';

const COMMON = {
  category: 'image/postprocessing',
  pythonModule: 'comfy_extras.nodes_post_processing',
  style: 'v3',
  outputs: [{ type: 'IMAGE' }],
} as const;

/** Blurs with a Gaussian kernel. */
export const imageBlur: NodeDef = {
  ...COMMON,
  name: 'ImageBlur',
  required: {
    image: ['IMAGE', {}],
    blur_radius: ['INT', { default: 1, min: 1, max: 31, step: 1 }],
    sigma: ['FLOAT', { default: 1.0, min: 0.1, max: 10.0, step: 0.1 }],
  },
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const radius = intInput(inputs, 'blur_radius');
    if (radius === 0) return { outputs: [image] };
    return { outputs: [convolve(context, image, gaussian(radius, floatInput(inputs, 'sigma')))] };
  },
};

/** Sharpening: the picture minus its blur, clipped. */
export const imageSharpen: NodeDef = {
  ...COMMON,
  name: 'ImageSharpen',
  required: {
    image: ['IMAGE', {}],
    sharpen_radius: ['INT', { default: 1, min: 1, max: 31, step: 1 }],
    sigma: ['FLOAT', { default: 1.0, min: 0.1, max: 10.0, step: 0.01 }],
    alpha: ['FLOAT', { default: 1.0, min: 0.0, max: 5.0, step: 0.01 }],
  },
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const radius = intInput(inputs, 'sharpen_radius');
    if (radius === 0) return { outputs: [image] };
    const blur = gaussian(radius, floatInput(inputs, 'sigma'));
    const result = convolve(context, image, sharpening(blur, floatInput(inputs, 'alpha')));
    for (let i = 0; i < result.data.length; i++) {
      result.data[i] = Math.min(Math.max(result.data[i] as number, 0), 1);
    }
    return { outputs: [result] };
  },
};
