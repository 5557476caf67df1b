import { type ImageValue, type NodeContext, type NodeDef, NodeFailure } from '../node.ts';
import { place } from './region.ts';
import { upscale } from '../resample/resample.ts';
import {
  boolInput,
  fillAlpha,
  frameOf,
  imageInput,
  intInput,
  newImage,
  optionalInput,
  stringInput,
} from '../tensor.ts';

type Colour = readonly [number, number, number];

const COLOURS: ReadonlyMap<string, Colour> = new Map([
  ['white', [1, 1, 1]],
  ['black', [0, 0, 0]],
  ['red', [1, 0, 0]],
  ['green', [0, 1, 0]],
  ['blue', [0, 0, 1]],
]);

const colourOf = (name: string): Colour => {
  const colour = COLOURS.get(name);
  if (colour) return colour;
  throw new NodeFailure('KeyError', `There is no spacing colour ${name}`);
};

type Pair = readonly [ImageValue, ImageValue];

type Axis = 'width' | 'height';

/** Joining two pictures side by side. */
export const imageStitch: NodeDef = {
  name: 'ImageStitch',
  displayName: 'Image Stitch',
  description: 'Puts the second picture beside the first one, with a coloured gap if wanted.',
  category: 'image/transform',
  pythonModule: 'comfy_extras.nodes_images',
  required: {
    image1: ['IMAGE'],
    direction: [['right', 'down', 'left', 'up'], { default: 'right' }],
    match_image_size: ['BOOLEAN', { default: true }],
    spacing_width: ['INT', { default: 0, min: 0, max: 1024, step: 2 }],
    spacing_color: [[...COLOURS.keys()], { default: 'white' }],
  },
  optional: { image2: ['IMAGE'] },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const first = imageInput(inputs, 'image1');
    const second = optionalInput(inputs, 'image2', imageInput);
    if (!second) return { outputs: [first] };
    const direction = stringInput(inputs, 'direction');
    const along = direction === 'left' || direction === 'right' ? 'width' : 'height';
    const colour = colourOf(stringInput(inputs, 'spacing_color'));
    const pair = sameBatch(context, [first, second]);
    const level: Pair = boolInput(inputs, 'match_image_size')
      ? matchSize(context, pair, along)
      : [
          padAcross(context, pair[0], { pair, along, colour }),
          padAcross(context, pair[1], { pair, along, colour }),
        ];
    const [one, two] = sameChannels(context, level);
    // v1 makes an odd gap even.
    const gap = Math.max(0, Math.ceil(intInput(inputs, 'spacing_width') / 2) * 2);
    const ordered: Pair = direction === 'left' || direction === 'up' ? [two, one] : [one, two];
    return { outputs: [join(context, ordered, { along, gap, colour })] };
  },
};

/** The shorter batch repeats its last picture. */
const sameBatch = (context: NodeContext, [first, second]: Pair): Pair => {
  const batch = Math.max(first.batch, second.batch);
  return [repeatLast(context, first, batch), repeatLast(context, second, batch)];
};

const repeatLast = (context: NodeContext, image: ImageValue, batch: number): ImageValue => {
  if (image.batch === batch) return image;
  const longer = newImage(context, { ...image, batch });
  longer.data.set(image.data);
  for (let i = image.batch; i < batch; i++) frameOf(longer, i).set(frameOf(image, image.batch - 1));
  return longer;
};

/** The second picture, keeping its proportions, takes the height (or width) of the first. */
const matchSize = (context: NodeContext, [first, second]: Pair, along: Axis): Pair => {
  const ratio = second.width / second.height;
  const size =
    along === 'width'
      ? { width: Math.trunc(first.height * ratio), height: first.height }
      : { width: first.width, height: Math.trunc(first.width / ratio) };
  return [first, upscale(context, second, { ...size, method: 'lanczos', crop: 'disabled' })];
};

type Padding = {
  readonly pair: Pair;
  readonly along: Axis;
  readonly colour: Colour;
};

/** The smaller picture goes to the middle; the borders are white for a white gap and black for all others. */
const padAcross = (
  context: NodeContext,
  image: ImageValue,
  { pair, along, colour }: Padding,
): ImageValue => {
  const across = along === 'width' ? 'height' : 'width';
  const wanted = Math.max(pair[0][across], pair[1][across]);
  if (image[across] === wanted) return image;
  const padded = newImage(context, { ...image, [across]: wanted });
  padded.data.fill(Math.min(...colour));
  const before = Math.floor((wanted - image[across]) / 2);
  const at = across === 'height' ? { x: 0, y: before } : { x: before, y: 0 };
  place(context, padded, { source: image, at });
  return padded;
};

const sameChannels = (context: NodeContext, [first, second]: Pair): Pair => {
  const channels = Math.max(first.channels, second.channels);
  return [fillAlpha(context, first, channels), fillAlpha(context, second, channels)];
};

type Joint = {
  readonly along: Axis;
  readonly gap: number;
  readonly colour: Colour;
};

const join = (
  context: NodeContext,
  [first, second]: Pair,
  { along, gap, colour }: Joint,
): ImageValue => {
  const length = first[along] + gap + second[along];
  const joined = newImage(context, { ...first, [along]: length });
  if (gap > 0) paint(context, joined, colour);
  const behind = first[along] + gap;
  place(context, joined, { source: first, at: { x: 0, y: 0 } });
  place(context, joined, {
    source: second,
    at: along === 'width' ? { x: behind, y: 0 } : { x: 0, y: behind },
  });
  return joined;
};

/** Opaque, where there is alpha. */
const paint = (context: NodeContext, image: ImageValue, colour: Colour): void => {
  const pixel = Float32Array.from({ length: image.channels }, (_, c) => colour[c] ?? 1);
  const row = new Float32Array(image.width * image.channels);
  for (let x = 0; x < image.width; x++) row.set(pixel, x * image.channels);
  for (let y = 0; y < image.batch * image.height; y++) {
    context.check();
    image.data.set(row, y * row.length);
  }
};
