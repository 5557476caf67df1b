import { type BoundingBox, type Pixels, type NodeContext, fail } from '../node.ts';
import { type Size, eachRow, newMask, newPixels } from '../tensor.ts';

export type Point = { readonly x: number; readonly y: number };

/**
 * Returns the part of a picture that a region names, as v1 reads it: positions below 0 count from
 * the end, the rest is cut off.
 */
export const regionWithin = (size: Size, region: BoundingBox): BoundingBox => {
  const place = (position: number, length: number): number =>
    Math.min(length, Math.max(0, position < 0 ? position + length : position));
  const [x, y] = [place(region.x, size.width), place(region.y, size.height)];
  const [right, below] = [region.x + region.width, region.y + region.height];
  const width = Math.max(0, place(right, size.width) - x);
  return { x, y, width, height: Math.max(0, place(below, size.height) - y) };
};

/** Returns one channel of a picture as a mask. */
export const channelOf = (context: NodeContext, image: Pixels, channel: number): Pixels => {
  const { channels, data } = image;
  const mask = newMask(context, image);
  for (let i = 0; i < mask.data.length; i++) mask.data[i] = data[i * channels + channel] as number;
  return mask;
};

/** Returns a mask in the three channels of a picture. */
export const greyPicture = (context: NodeContext, mask: Pixels): Pixels => {
  if (mask.data.length === 0) return fail('RuntimeError', 'The mask is empty');
  const image = newPixels(context, { ...mask, kind: 'image', channels: 3 });
  for (let i = 0; i < mask.data.length; i++) {
    if (i % mask.width === 0) context.check();
    image.data.fill(mask.data[i] as number, i * 3, i * 3 + 3);
  }
  return image;
};

/**
 * Refuses a second picture with fewer channels: v1 drops the alpha of the second when the first has
 * none, but fails in the opposite case.
 */
export const requireChannels = (
  [firstName, first]: readonly [string, Pixels],
  [secondName, second]: readonly [string, Pixels],
): void => {
  if (first.channels <= second.channels) return;
  const counts = `${first.channels} channels but ${secondName} only ${second.channels}`;
  const message = `${firstName} has ${counts}; join an alpha channel to ${secondName} first`;
  return fail('RuntimeError', message);
};

/** Cuts the region out of every picture of the batch. It may be empty. */
export const cutOut = (
  context: NodeContext,
  image: Pixels,
  { x, y, width, height }: BoundingBox,
): Pixels => {
  const part = newPixels(context, { ...image, width, height });
  eachRow(context, part, (row) => {
    const line = Math.floor(row / height) * image.height + y + (row % height);
    const from = (line * image.width + x) * image.channels;
    const pixels = image.data.subarray(from, from + width * image.channels);
    part.data.set(pixels, row * width * image.channels);
  });
  return part;
};

/**
 * Cuts a region out. A corner outside the picture is moved onto its last column or row, so that one
 * pixel remains.
 */
export const crop = (context: NodeContext, image: Pixels, region: BoundingBox): Pixels => {
  const x = Math.min(region.x, image.width - 1);
  const y = Math.min(region.y, image.height - 1);
  return cutOut(context, image, regionWithin(image, { ...region, x, y }));
};

/** Copies every picture of `source` into the same picture of `target`, where it must fit. */
export const place = (context: NodeContext, target: Pixels, source: Pixels, at: Point): void => {
  const length = source.width * source.channels;
  eachRow(context, source, (row) => {
    const line = Math.floor(row / source.height) * target.height + at.y + (row % source.height);
    const pixels = source.data.subarray(row * length, (row + 1) * length);
    target.data.set(pixels, (line * target.width + at.x) * target.channels);
  });
};

/** One row in which the upper picture covers the lower one. */
type CoveredRow = {
  readonly width: number;
  /** The first pixel that is covered. */
  readonly to: number;
  /** Returns the pixel above it, of the upper picture or of one of its size. Its batch repeats. */
  readonly from: (upper: Pixels) => number;
};

/**
 * Visits the rows of `target` that `source` covers when its corner is at `at`; there may be none.
 * v1 fails on negative offsets; here they cut off the other edge.
 */
export const eachCoveredRow = (
  context: NodeContext,
  { target, source, at }: { target: Pixels; source: Pixels; at: Point },
  act: (row: CoveredRow) => void,
): void => {
  const inTarget = { x: Math.max(0, at.x), y: Math.max(0, at.y) };
  const inSource = { x: Math.max(0, -at.x), y: Math.max(0, -at.y) };
  const width = Math.min(target.width - inTarget.x, source.width - inSource.x);
  const height = Math.min(target.height - inTarget.y, source.height - inSource.y);
  eachRow(context, { batch: target.batch, height }, (row) => {
    const [frame, line] = [Math.floor(row / height), row % height];
    const to = pixelAt(target, frame, { x: inTarget.x, y: inTarget.y + line });
    const above = { x: inSource.x, y: inSource.y + line };
    act({ width, to, from: (upper) => pixelAt(upper, frame % upper.batch, above) });
  });
};

/** Fails as v1's slices do, whose end comes before the edge when the offset is a little beyond it. */
export const refuseBeyond = (at: Point, target: Size, source: Size): void => {
  const [right, below] = [at.x - target.width, at.y - target.height];
  const isBeyond = (by: number, size: number): boolean => by > 0 && by < size - 1;
  if (isBeyond(right, source.width) || isBeyond(below, source.height))
    return fail('RuntimeError', 'Cannot lay a mask beyond the edge');
};

const pixelAt = ({ height, width }: Size, frame: number, { x, y }: Point): number =>
  (frame * height + y) * width + x;

/** The properties of the nodes that make or change masks. */
export const MASK_EXTRAS = {
  category: 'image/mask',
  pythonModule: 'comfy_extras.nodes_mask',
  style: 'v3',
} as const;

/** A place in a picture. */
export const OFFSET = ['INT', { default: 0, min: 0, max: 16384, step: 1 }] as const;

/** A side of a picture. */
export const SIDE = ['INT', { default: 512, min: 1, max: 16384, step: 1 }] as const;

/** Returns a copy to draw on. */
export const copyOf = (context: NodeContext, image: Pixels): Pixels => {
  const copy = newPixels(context, image);
  copy.data.set(image.data);
  return copy;
};

/** Returns the negative. */
export const inverted = (context: NodeContext, pixels: Pixels): Pixels => {
  const negative = newPixels(context, pixels);
  for (let i = 0; i < pixels.data.length; i++) negative.data[i] = 1 - (pixels.data[i] as number);
  return negative;
};
