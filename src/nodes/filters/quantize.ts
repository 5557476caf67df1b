import { medianCut, nearestIn, type Palette } from './palette.ts';
import { type NodeContext, NodeFailure } from '../node.ts';
import { frameOf, fromBytes, newImage } from '../tensor.ts';
import { entryOf, typedNode } from '../typed-node.ts';

/** The RGB bytes of one picture. */
type Picture = { readonly width: number; readonly height: number; readonly data: Uint8Array };

type Ditherer = (context: NodeContext, picture: Picture, palette: Palette) => Uint8Array;

const plain: Ditherer = (context, { width, height, data }, palette) => {
  const nearest = nearestIn(palette);
  const result = new Uint8Array(data.length);
  for (let y = 0; y < height; y++) {
    context.check();
    for (let i = y * width * 3; i < (y + 1) * width * 3; i += 3) {
      const entry = nearest(data[i] as number, data[i + 1] as number, data[i + 2] as number);
      for (let c = 0; c < 3; c++) result[i + c] = palette.data[entry * 3 + c] as number;
    }
  }
  return result;
};

const clip = (level: number): number => Math.min(255, Math.max(0, level));

/** Dithers by Floyd–Steinberg in whole sixteenths, left to right on every row. */
const diffused: Ditherer = (context, { width, height, data }, palette) => {
  const nearest = nearestIn(palette);
  const result = new Uint8Array(data.length);
  const below = new Int32Array((width + 1) * 3);
  for (let y = 0; y < height; y++) {
    context.check();
    const state = { right: [0, 0, 0], corner: [0, 0, 0], last: [0, 0, 0] };
    for (let x = 0; x < width; x++) {
      const i = (y * width + x) * 3;
      const level = (c: number): number =>
        clip(
          (data[i + c] as number) +
            Math.trunc(((state.right[c] as number) + (below[(x + 1) * 3 + c] as number)) / 16),
        );
      const wanted = [level(0), level(1), level(2)] as const;
      const entry = nearest(...wanted);
      for (let c = 0; c < 3; c++) {
        const taken = palette.data[entry * 3 + c] as number;
        const error = (wanted[c] as number) - taken;
        result[i + c] = taken;
        below[x * 3 + c] = error * 3 + (state.corner[c] as number);
        state.corner[c] = error * 5 + (state.last[c] as number);
        state.last[c] = error;
        state.right[c] = error * 7;
      }
    }
    // Behind the last column, the original leaves the remainders of blue in all three channels.
    below.set(
      [state.corner[2] as number, state.last[2] as number, state.last[2] as number],
      width * 3,
    );
  }
  return result;
};

/** Dithers in order: a repeating pattern of offsets is added before the nearest colour is taken. */
const ordered =
  (side: number): Ditherer =>
  (context, picture, palette) => {
    const { width, data } = picture;
    const pattern = bayer(side).map((value) => value * ((2 * 256) / palette.size) + 0.5);
    const shifted = data.map((level, i) => {
      const pixel = Math.floor(i / 3);
      const [x, y] = [pixel % width, Math.floor(pixel / width)];
      return Math.trunc(
        clip(Math.fround(level + (pattern[(y % side) * side + (x % side)] as number))),
      );
    });
    return plain(context, { ...picture, data: shifted }, palette);
  };

/** Returns the Bayer matrix of that side, with values around zero, built by doubling. */
const bayer = (side: number): Float32Array => {
  if (side === 1) return new Float32Array(1);
  const half = side / 2;
  const smaller = bayer(half);
  const cells = side * side;
  return Float32Array.from({ length: cells }, (_, i) => {
    const [x, y] = [i % side, Math.floor(i / side)];
    const offset = [-1.5, 0.5, 1.5, -0.5][Number(y >= half) * 2 + Number(x >= half)] as number;
    return (cells * (smaller[(y % half) * half + (x % half)] as number) + offset) / cells;
  });
};

const DITHERERS: { readonly [dither: string]: Ditherer } = {
  none: plain,
  'floyd-steinberg': diffused,
  'bayer-2': ordered(2),
  'bayer-4': ordered(4),
  'bayer-8': ordered(8),
  'bayer-16': ordered(16),
};

/** Cuts off fractions without clipping first: above 1 the byte wraps, as in the original's cast. */
const truncateToBytes = (levels: Float32Array): Uint8Array => {
  const bytes = new Uint8Array(levels.length);
  for (let i = 0; i < levels.length; i++) bytes[i] = Math.fround((levels[i] as number) * 255);
  return bytes;
};

/** Reduces the number of colours. */
export const imageQuantize = typedNode({
  name: 'ImageQuantize',
  category: 'image/postprocessing',
  pythonModule: 'comfy_extras.nodes_post_processing',
  style: 'v3',
  required: {
    image: ['IMAGE', {}],
    colors: ['INT', { default: 256, min: 1, max: 256, step: 1 }],
    dither: ['COMBO', { multiselect: false, options: Object.keys(DITHERERS) }],
  },
  outputs: [{ type: 'IMAGE' }],
  run({ image, colors: colours, dither: word }, context) {
    const dither = entryOf(DITHERERS, word, ['ValueError', 'Unknown dithering:']);
    if (image.channels !== 3) {
      throw new NodeFailure('ValueError', `ImageQuantize needs 3 channels, got ${image.channels}`);
    }
    const result = newImage(context, image);
    for (let index = 0; index < image.batch; index++) {
      const data = truncateToBytes(frameOf(image, index));
      const picture = { width: image.width, height: image.height, data };
      fromBytes(dither(context, picture, medianCut(data, colours)), frameOf(result, index));
    }
    return { outputs: [result] };
  },
});
