import {
  type ImageValue,
  type NodeContext,
  type NodeDef,
  NodeFailure,
  type Inputs,
  type MaskValue,
} from '../node.ts';
import { cutOut, spanWithin, place } from './region.ts';
import { eachRow, imageInput, intInput, newImage, stringInput, newMask } from '../tensor.ts';
import { imageStitch } from './transform-stitch.ts';
import { resampleMethod, upscale } from '../resample/resample.ts';

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
const PAD_NODES: readonly NodeDef[] = [imagePadForOutpaint, resizeAndPadImage];

const COMMON = {
  category: 'image/transform',
  pythonModule: 'comfy_extras.nodes_images',
  outputs: [{ type: 'IMAGE' }],
} as const;

const imageCrop: NodeDef = {
  ...COMMON,
  name: 'ImageCrop',
  displayName: 'Image Crop',
  required: {
    image: ['IMAGE'],
    width: ['INT', { default: 512, min: 1, max: 16384, step: 1 }],
    height: ['INT', { default: 512, min: 1, max: 16384, step: 1 }],
    x: ['INT', { default: 0, min: 0, max: 16384, step: 1 }],
    y: ['INT', { default: 0, min: 0, max: 16384, step: 1 }],
  },
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    // A corner outside the picture is moved onto its last column or row, so that one pixel is left.
    const x = Math.min(intInput(inputs, 'x'), image.width - 1);
    const y = Math.min(intInput(inputs, 'y'), image.height - 1);
    const [width, height] = [intInput(inputs, 'width'), intInput(inputs, 'height')];
    const columns = spanWithin(image.width, { start: x, end: x + width });
    const rows = spanWithin(image.height, { start: y, end: y + height });
    return { outputs: [cutOut(context, image, { columns, rows })] };
  },
};

type Sides = { readonly width: number; readonly height: number };

/** How to read a picture, counted in its pixels, so as to fill another one row by row. */
type Walk = { readonly origin: number; readonly perColumn: number; readonly perRow: number };

type Route = (sides: Sides) => Sides & Walk;

const upright = (sides: Sides, walk: Walk): Sides & Walk => ({ ...sides, ...walk });

const lying = ({ width, height }: Sides, walk: Walk): Sides & Walk => ({
  width: height,
  height: width,
  ...walk,
});

const FLIPS: ReadonlyMap<string, Route> = new Map([
  [
    'x-axis: vertically',
    ({ width, height }) =>
      upright({ width, height }, { origin: (height - 1) * width, perColumn: 1, perRow: -width }),
  ],
  [
    'y-axis: horizontally',
    ({ width, height }) =>
      upright({ width, height }, { origin: width - 1, perColumn: -1, perRow: width }),
  ],
]);

/** Clockwise. */
const ROTATIONS: ReadonlyMap<string, Route> = new Map([
  [
    'none',
    ({ width, height }) => upright({ width, height }, { origin: 0, perColumn: 1, perRow: width }),
  ],
  [
    '90 degrees',
    ({ width, height }) =>
      lying({ width, height }, { origin: (height - 1) * width, perColumn: -width, perRow: 1 }),
  ],
  [
    '180 degrees',
    ({ width, height }) =>
      upright({ width, height }, { origin: height * width - 1, perColumn: -1, perRow: -width }),
  ],
  [
    '270 degrees',
    ({ width, height }) =>
      lying({ width, height }, { origin: width - 1, perColumn: width, perRow: -1 }),
  ],
]);

/** Words that only a link can bring leave the picture as it is, as in v1. */
const rearrange = (context: NodeContext, image: ImageValue, route?: Route): ImageValue => {
  if (!route) return image;
  const walk = route(image);
  const result = newImage(context, { ...image, width: walk.width, height: walk.height });
  const pixels = image.width * image.height;
  const { channels, data } = image;
  const step = walk.perColumn * channels;
  eachRow(context, result, (row) => {
    const frame = Math.floor(row / result.height);
    let from = (frame * pixels + walk.origin + (row % result.height) * walk.perRow) * channels;
    let to = row * result.width * channels;
    for (let x = 0; x < result.width; x++, from += step) {
      for (let c = 0; c < channels; c++) result.data[to++] = data[from + c] as number;
    }
  });
  return result;
};

const imageFlip: NodeDef = {
  ...COMMON,
  name: 'ImageFlip',
  required: { image: ['IMAGE'], flip_method: [[...FLIPS.keys()]] },
  run: (inputs, context) => {
    const route = FLIPS.get(stringInput(inputs, 'flip_method'));
    return { outputs: [rearrange(context, imageInput(inputs, 'image'), route)] };
  },
};

const imageRotate: NodeDef = {
  ...COMMON,
  name: 'ImageRotate',
  required: { image: ['IMAGE'], rotation: [[...ROTATIONS.keys()]] },
  run: (inputs, context) => {
    const route = ROTATIONS.get(stringInput(inputs, 'rotation'));
    return { outputs: [rearrange(context, imageInput(inputs, 'image'), route)] };
  },
};

/** Everything that cuts, turns, pads or joins pictures. */
export const TRANSFORM_NODES: readonly NodeDef[] = [
  imageCrop,
  imageFlip,
  imageRotate,
  ...PAD_NODES,
  imageStitch,
];
