import { imageBlend } from './blend.ts';
import { imageBlur, imageSharpen } from './blur.ts';
import { imageQuantize } from './quantize.ts';
import type { NodeDef } from '../node.ts';
import { imageInput, newImage } from '../tensor.ts';

const imageInvert: NodeDef = {
  name: 'ImageInvert',
  displayName: 'Invert Image',
  category: 'image',
  pythonModule: 'nodes',
  required: { image: ['IMAGE'] },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const inverted = newImage(context, image);
    // Alpha is turned too; v1 makes no exception for it.
    for (let i = 0; i < image.data.length; i++) inverted.data[i] = 1 - (image.data[i] as number);
    return { outputs: [inverted] };
  },
};

/** Everything that changes a picture's colours and keeps its size. */
export const FILTER_NODES: readonly NodeDef[] = [
  imageInvert,
  imageBlend,
  imageBlur,
  imageSharpen,
  imageQuantize,
];
