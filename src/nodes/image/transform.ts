import type { ImageValue, NodeContext, NodeDef } from '../node.ts';
import { cutOut, spanWithin } from './region.ts';
import { eachRow, imageInput, intInput, newImage, stringInput } from '../tensor.ts';
import { PAD_NODES } from './transform-pad.ts';
import { imageStitch } from './transform-stitch.ts';

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
