import { type Pixels, type NodeContext, type NodeDef, fail } from '../node.ts';
import { OFFSET, SIDE, crop, place } from './region.ts';
import { type Size, eachRow, newMask, newPixels } from '../tensor.ts';
import { combo, typedNode } from '../typed-node.ts';
import { imageStitch } from './transform-stitch.ts';
import { upscale } from '../resample/resample.ts';

const COMMON = {
  category: 'image/transform',
  pythonModule: 'comfy_extras.nodes_images',
  style: 'v3',
  outputs: [{ type: 'IMAGE' }],
} as const;

type Margins = Readonly<Record<'left' | 'top' | 'right' | 'bottom', number>>;

const EDGE = ['INT', { default: 0, min: 0, max: 16384, step: 8 }] as const;

/** The steps through a picture, in pixels, that fill another one row by row. */
type Walk = readonly [origin: number, perColumn: number, perRow: number];

type Walks = ReadonlyMap<string, (size: Size) => Walk>;

const FLIPS: Walks = new Map<string, (size: Size) => Walk>([
  ['x-axis: vertically', ({ width, height }) => [(height - 1) * width, 1, -width]],
  ['y-axis: horizontally', ({ width }) => [width - 1, -1, width]],
]);

/** The rotations, clockwise. */
const ROTATIONS: Walks = new Map<string, (size: Size) => Walk>([
  ['none', ({ width }) => [0, 1, width]],
  ['90 degrees', ({ width, height }) => [(height - 1) * width, -width, 1]],
  ['180 degrees', ({ width, height }) => [height * width - 1, -1, -width]],
  ['270 degrees', ({ width }) => [width - 1, width, -1]],
]);

/** The nodes that cut, turn, pad or join pictures. */
export const TRANSFORM_NODES: readonly NodeDef[] = [
  typedNode({
    ...COMMON,
    name: 'ImageCrop',
    displayName: 'Crop Image (DEPRECATED)',
    deprecated: true,
    required: {
      image: ['IMAGE', {}],
      width: SIDE,
      height: SIDE,
      x: OFFSET,
      y: OFFSET,
    },
    run: ({ image, ...region }, context) => ({ outputs: [crop(context, image, region)] }),
  }),
  typedNode({
    ...COMMON,
    name: 'ImageFlip',
    displayName: 'Flip Image',
    required: { image: ['IMAGE', {}], flip_method: combo([...FLIPS.keys()]) },
    run({ image, flip_method: method }, context) {
      return { outputs: [rearrange(context, image, image, FLIPS.get(method)?.(image))] };
    },
  }),
  typedNode({
    ...COMMON,
    name: 'ImageRotate',
    displayName: 'Rotate Image',
    required: { image: ['IMAGE', {}], rotation: combo([...ROTATIONS.keys()]) },
    run({ image, rotation }, context) {
      const { width, height } = image;
      const isQuarter = rotation === '90 degrees' || rotation === '270 degrees';
      const size = isQuarter ? { width: height, height: width } : image;
      return { outputs: [rearrange(context, image, size, ROTATIONS.get(rotation)?.(image))] };
    },
  }),
  typedNode({
    name: 'ImagePadForOutpaint',
    displayName: 'Pad Image for Outpainting',
    category: 'image/transform',
    pythonModule: 'nodes',
    required: {
      image: ['IMAGE'],
      left: EDGE,
      top: EDGE,
      right: EDGE,
      bottom: EDGE,
      feathering: ['INT', { default: 40, min: 0, max: 16384, step: 1, advanced: true }],
    },
    outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
    run({ image, feathering, ...margins }, context) {
      if (Math.min(...Object.values(margins)) < 0)
        return fail('RuntimeError', 'left, top, right and bottom cannot be below 0');
      const padded = padInGrey(context, image, margins);
      return { outputs: [padded, outpaintMask(context, image, margins, feathering)] };
    },
  }),
  typedNode({
    ...COMMON,
    name: 'ResizeAndPadImage',
    displayName: 'Resize And Pad Image',
    required: {
      image: ['IMAGE', {}],
      target_width: SIDE,
      target_height: SIDE,
      padding_color: combo(['white', 'black'], { advanced: true }),
      interpolation: combo(['area', 'bicubic', 'nearest-exact', 'bilinear', 'lanczos'], {
        advanced: true,
      }),
    },
    run({ image, target_width: width, target_height: height, ...inputs }, context) {
      const factor = Math.min(width / image.width, height / image.height);
      const size = {
        width: Math.trunc(image.width * factor),
        height: Math.trunc(image.height * factor),
      };
      const source = upscale(context, image, { ...size, method: inputs.interpolation });
      const padded = newPixels(context, { ...image, width, height });
      if (inputs.padding_color !== 'black') padded.data.fill(1);
      const x = Math.floor((width - size.width) / 2);
      const y = Math.floor((height - size.height) / 2);
      place(context, padded, source, { x, y });
      return { outputs: [padded] };
    },
  }),
  imageStitch,
];

/** Pads in grey. Alpha, if there is any, becomes grey in the margins like the other channels. */
const padInGrey = (context: NodeContext, image: Pixels, margins: Margins): Pixels => {
  const { left, top, right, bottom } = margins;
  const [width, height] = [image.width + left + right, image.height + top + bottom];
  const padded = newPixels(context, { ...image, width, height });
  padded.data.fill(0.5);
  place(context, padded, image, { x: left, y: top });
  return padded;
};

/**
 * Returns one mask for all pictures: 1 in the margins, and falling off inside the padded edges
 * only.
 */
const outpaintMask = (
  context: NodeContext,
  image: Pixels,
  { left, top, right, bottom }: Margins,
  feathering: number,
): Pixels => {
  const [width, height] = [image.width + left + right, image.height + top + bottom];
  const mask = newMask(context, { batch: 1, width, height });
  mask.data.fill(1);
  // Both sides must be at least two feathers wide; otherwise there is no feathering.
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

/**
 * Returns the distance of each position from the padded ends. An end without padding is infinitely
 * far.
 */
const edgeDistances = (length: number, before: number, after: number): Float64Array =>
  Float64Array.from({ length }, (_, i) =>
    Math.min(before === 0 ? Infinity : i, after === 0 ? Infinity : length - i),
  );

/**
 * Rearranges a picture. Other words can come through a link only; they leave the picture unchanged,
 * as in v1.
 */
const rearrange = (
  context: NodeContext,
  image: Pixels,
  size: Size,
  walk: Walk | undefined,
): Pixels => {
  if (!walk) return image;
  const [origin, perColumn, perRow] = walk;
  const result = newPixels(context, { ...image, width: size.width, height: size.height });
  const pixels = image.width * image.height;
  const { channels, data } = image;
  const step = perColumn * channels;
  eachRow(context, result, (row) => {
    const frame = Math.floor(row / result.height);
    let from = (frame * pixels + origin + (row % result.height) * perRow) * channels;
    let to = row * result.width * channels;
    for (let x = 0; x < result.width; x++, from += step) {
      for (let c = 0; c < channels; c++) result.data[to++] = data[from + c] as number;
    }
  });
  return result;
};
