import { type Pixels, type NodeContext } from '../node.ts';
import { place } from './region.ts';
import { upscale } from '../resample/resample.ts';
import { eachRow, fillAlpha, frameOf, newPixels } from '../tensor.ts';
import { combo, entryOf, typedNode } from '../typed-node.ts';

type Colour = readonly [number, number, number];

const COLOURS: { readonly [name: string]: Colour } = {
  white: [1, 1, 1],
  black: [0, 0, 0],
  red: [1, 0, 0],
  green: [0, 1, 0],
  blue: [0, 0, 1],
};

type Pair = readonly [Pixels, Pixels];

type Axis = 'width' | 'height';

type Stitch = { readonly along: Axis; readonly colour: Colour };

/** Joins two pictures side by side. */
export const imageStitch = typedNode({
  name: 'ImageStitch',
  displayName: 'Stitch Images',
  description: 'Puts the second picture beside the first one, with a coloured gap if wanted.',
  category: 'image/transform',
  pythonModule: 'comfy_extras.nodes_images',
  style: 'v3',
  required: {
    image1: ['IMAGE', {}],
    direction: combo(['right', 'down', 'left', 'up'], { default: 'right' }),
    match_image_size: ['BOOLEAN', { default: true }],
    spacing_width: ['INT', { advanced: true, default: 0, min: 0, max: 1024, step: 2 }],
    spacing_color: combo(Object.keys(COLOURS), { advanced: true, default: 'white' }),
  },
  optional: { image2: ['IMAGE', {}] },
  outputs: [{ type: 'IMAGE' }],
  run({ image1: given, image2: other, direction, ...inputs }, context) {
    if (!other) return { outputs: [given] };
    const along = direction === 'left' || direction === 'right' ? 'width' : 'height';
    const colour = entryOf(COLOURS, inputs.spacing_color, [
      'KeyError',
      'There is no spacing colour',
    ]);
    const batch = Math.max(given.batch, other.batch);
    const pair = [repeatLast(context, given, batch), repeatLast(context, other, batch)] as const;
    const [first, second] = inputs.match_image_size
      ? matchSize(context, pair, along)
      : padAcross(context, pair, { along, colour });
    const channels = Math.max(first.channels, second.channels);
    const one = fillAlpha(context, first, channels);
    const two = fillAlpha(context, second, channels);
    // v1 makes an odd gap even.
    const gap = Math.max(0, Math.ceil(inputs.spacing_width / 2) * 2);
    const ordered: Pair = direction === 'left' || direction === 'up' ? [two, one] : [one, two];
    return { outputs: [join(context, ordered, { along, gap, colour })] };
  },
});

/** Repeats the last picture of the shorter batch. */
const repeatLast = (context: NodeContext, image: Pixels, batch: number): Pixels => {
  if (image.batch === batch) return image;
  const longer = newPixels(context, { ...image, batch });
  longer.data.set(image.data);
  for (let i = image.batch; i < batch; i++) frameOf(longer, i).set(frameOf(image, image.batch - 1));
  return longer;
};

/** Scales the second picture to the height (or width) of the first, with its proportions. */
const matchSize = (context: NodeContext, [first, second]: Pair, along: Axis): Pair => {
  const ratio = second.width / second.height;
  const size =
    along === 'width'
      ? { width: Math.trunc(first.height * ratio), height: first.height }
      : { width: first.width, height: Math.trunc(first.width / ratio) };
  return [first, upscale(context, second, { ...size, method: 'lanczos' })];
};

/**
 * Puts the smaller picture into the middle. The borders are white for a white gap, and black for
 * all others.
 */
const padAcross = (context: NodeContext, [first, second]: Pair, stitch: Stitch): Pair => {
  const across = stitch.along === 'width' ? 'height' : 'width';
  const wanted = Math.max(first[across], second[across]);
  const padded = (image: Pixels): Pixels => {
    if (image[across] === wanted) return image;
    const result = newPixels(context, { ...image, [across]: wanted });
    result.data.fill(Math.min(...stitch.colour));
    const before = Math.floor((wanted - image[across]) / 2);
    place(context, result, image, across === 'height' ? { x: 0, y: before } : { x: before, y: 0 });
    return result;
  };
  return [padded(first), padded(second)];
};

const join = (
  context: NodeContext,
  [first, second]: Pair,
  { along, gap, colour }: Stitch & { readonly gap: number },
): Pixels => {
  const length = first[along] + gap + second[along];
  const joined = newPixels(context, { ...first, [along]: length });
  if (gap > 0) paint(context, joined, colour);
  place(context, joined, first, { x: 0, y: 0 });
  const behind = first[along] + gap;
  place(context, joined, second, along === 'width' ? { x: behind, y: 0 } : { x: 0, y: behind });
  return joined;
};

/** Fills a picture with a colour, opaque if it has alpha. */
const paint = (context: NodeContext, image: Pixels, colour: Colour): void => {
  const pixel = Float32Array.from({ length: image.channels }, (_, c) => colour[c] ?? 1);
  const row = new Float32Array(image.width * image.channels);
  for (let x = 0; x < image.width; x++) row.set(pixel, x * image.channels);
  eachRow(context, image, (y) => image.data.set(row, y * row.length));
};
