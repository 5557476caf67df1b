import { NodeFailure } from '../node.ts';
import type { ImageValue, Inputs, MaskValue, NodeContext, NodeDef } from '../node.ts';
import { place } from './region.ts';
import { resampleMethod, upscale } from '../resample/resample.ts';
import { imageInput, intInput, newImage, newMask, stringInput } from '../tensor.ts';

type Margins = {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
};

const EDGE = ['INT', { default: 0, min: 0, max: 16384, step: 8 }] as const;

const imagePadForOutpaint: NodeDef = {
  name: 'ImagePadForOutpaint',
  displayName: 'Pad Image for Outpainting',
  category: 'image',
  pythonModule: 'nodes',
  required: {
    image: ['IMAGE'],
    left: EDGE,
    top: EDGE,
    right: EDGE,
    bottom: EDGE,
    feathering: ['INT', { default: 40, min: 0, max: 16384, step: 1 }],
  },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const margins = marginsOf(inputs);
    const feathering = intInput(inputs, 'feathering');
    const padded = padInGrey(context, image, margins);
    return { outputs: [padded, outpaintMask(context, image, { margins, feathering })] };
  },
};

const marginsOf = (inputs: Inputs): Margins => {
  const [left, top] = [intInput(inputs, 'left'), intInput(inputs, 'top')];
  const [right, bottom] = [intInput(inputs, 'right'), intInput(inputs, 'bottom')];
  if (Math.min(left, top, right, bottom) >= 0) return { left, top, right, bottom };
  throw new NodeFailure('RuntimeError', 'left, top, right and bottom cannot be below 0');
};

/** Alpha, if there is one, becomes grey in the margins like any other channel. */
const padInGrey = (context: NodeContext, image: ImageValue, margins: Margins): ImageValue => {
  const { left, top, right, bottom } = margins;
  const [width, height] = [image.width + left + right, image.height + top + bottom];
  const padded = newImage(context, { ...image, width, height });
  padded.data.fill(0.5);
  place(context, padded, { source: image, at: { x: left, y: top } });
  return padded;
};

type Feather = { readonly margins: Margins; readonly feathering: number };

/** One mask however many pictures: 1 in the margins, falling off inside the padded edges only. */
const outpaintMask = (
  context: NodeContext,
  image: ImageValue,
  { margins, feathering }: Feather,
): MaskValue => {
  const { left, top, right, bottom } = margins;
  const [width, height] = [image.width + left + right, image.height + top + bottom];
  const mask = newMask(context, { batch: 1, width, height });
  mask.data.fill(1);
  // Both sides must be at least two feathers wide, or there is no feathering.
  const reach = feathering * 2 < Math.min(image.width, image.height) ? feathering : 0;
  const across = edgeDistances(image.width, left, right);
  const down = edgeDistances(image.height, top, bottom);
  for (let y = 0; y < image.height; y++) {
    context.check();
    const start = (top + y) * width + left;
    for (let x = 0; x < image.width; x++) {
      const distance = Math.min(across[x] as number, down[y] as number);
      const level = distance >= reach ? 0 : (reach - distance) / reach;
      mask.data[start + x] = level * level;
    }
  }
  return mask;
};

/** How far each position is from the padded ends; an end without padding is infinitely far. */
const edgeDistances = (length: number, before: number, after: number): Float64Array =>
  Float64Array.from({ length }, (_, i) =>
    Math.min(before === 0 ? Infinity : i, after === 0 ? Infinity : length - i),
  );

const resizeAndPadImage: NodeDef = {
  name: 'ResizeAndPadImage',
  category: 'image/transform',
  pythonModule: 'comfy_extras.nodes_images',
  required: {
    image: ['IMAGE'],
    target_width: ['INT', { default: 512, min: 1, max: 16384, step: 1 }],
    target_height: ['INT', { default: 512, min: 1, max: 16384, step: 1 }],
    padding_color: [['white', 'black']],
    interpolation: [['area', 'bicubic', 'nearest-exact', 'bilinear', 'lanczos']],
  },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const [width, height] = [intInput(inputs, 'target_width'), intInput(inputs, 'target_height')];
    const method = resampleMethod(stringInput(inputs, 'interpolation'));
    const factor = Math.min(width / image.width, height / image.height);
    const size = {
      width: Math.trunc(image.width * factor),
      height: Math.trunc(image.height * factor),
    };
    const source = upscale(context, image, { ...size, method, crop: 'disabled' });
    const padded = newImage(context, { ...image, width, height });
    if (stringInput(inputs, 'padding_color') !== 'black') padded.data.fill(1);
    const x = Math.floor((width - size.width) / 2);
    const y = Math.floor((height - size.height) / 2);
    place(context, padded, { source, at: { x, y } });
    return { outputs: [padded] };
  },
};

/** Everything that puts a picture on a larger sheet. */
export const PAD_NODES: readonly NodeDef[] = [imagePadForOutpaint, resizeAndPadImage];
