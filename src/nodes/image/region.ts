import { type ImageValue, type MaskValue, NodeFailure } from '../node.ts';
import { type LoopContext, type Size, eachRow, newImage } from '../tensor.ts';

/** The positions from `start` up to, but not including, `end`. */
export type Span = { readonly start: number; readonly end: number };

export type Point = { readonly x: number; readonly y: number };

/**
 * Returns the part of `0..length` that a span names, as v1 reads it: positions below 0 count from
 * the end, the rest is cut off.
 */
export const spanWithin = (length: number, { start, end }: Span): Span => {
  const place = (position: number): number =>
    Math.min(length, Math.max(0, position < 0 ? position + length : position));
  return { start: place(start), end: Math.max(place(start), place(end)) };
};

/** Returns a mask as a picture of one channel that shares its data. */
export const asPicture = (mask: MaskValue): ImageValue => ({ ...mask, kind: 'image', channels: 1 });

/** Returns a picture of one channel as a mask that shares its data. */
export const asMask = ({ batch, height, width, data }: ImageValue): MaskValue => ({
  kind: 'mask',
  batch,
  height,
  width,
  data,
});

/** Returns a mask in the three channels of a picture. */
export const greyPicture = (context: LoopContext, mask: MaskValue): ImageValue => {
  const image = newImage(context, { ...mask, channels: 3 });
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
  [firstName, first]: readonly [string, ImageValue],
  [secondName, second]: readonly [string, ImageValue],
): void => {
  if (first.channels <= second.channels) return;
  const counts = `${first.channels} channels but ${secondName} only ${second.channels}`;
  const message = `${firstName} has ${counts}; join an alpha channel to ${secondName} first`;
  throw new NodeFailure('RuntimeError', message);
};

/**
 * Cuts the region out of every picture of the batch. v1 returns pictures without pixels, on which
 * every later node fails; here that is refused.
 */
export const cutOut = (
  context: LoopContext,
  image: ImageValue,
  { columns, rows }: { readonly columns: Span; readonly rows: Span },
): ImageValue => {
  const [width, height] = [columns.end - columns.start, rows.end - rows.start];
  if (width < 1 || height < 1) {
    const pixels = `${image.width} × ${image.height} pixels`;
    throw new NodeFailure('ValueError', `Nothing of the ${pixels} lies in the wanted region`);
  }
  const part = newImage(context, { ...image, width, height });
  eachRow(context, part, (row) => {
    const line = Math.floor(row / height) * image.height + rows.start + (row % height);
    const from = (line * image.width + columns.start) * image.channels;
    const pixels = image.data.subarray(from, from + width * image.channels);
    part.data.set(pixels, row * width * image.channels);
  });
  return part;
};

/** Copies every picture of `source` into the same picture of `target`, where it must fit. */
export const place = (
  context: LoopContext,
  target: ImageValue,
  source: ImageValue,
  at: Point,
): void => {
  const length = source.width * source.channels;
  eachRow(context, source, (row) => {
    const line = Math.floor(row / source.height) * target.height + at.y + (row % source.height);
    const pixels = source.data.subarray(row * length, (row + 1) * length);
    target.data.set(pixels, (line * target.width + at.x) * target.channels);
  });
};

/**
 * Returns the part of `source` that is visible on `target` when its corner is at `at`; it may be
 * empty. v1 fails on negative offsets; here they cut off the other edge.
 */
export const overlapOf = (target: Size, source: Size, at: Point) => {
  const inTarget = { x: Math.max(0, at.x), y: Math.max(0, at.y) };
  const inSource = { x: Math.max(0, -at.x), y: Math.max(0, -at.y) };
  const width = Math.min(target.width - inTarget.x, source.width - inSource.x);
  const height = Math.min(target.height - inTarget.y, source.height - inSource.y);
  return { width: Math.max(0, width), height: Math.max(0, height), inTarget, inSource };
};

/** Returns a copy to draw on. */
export const copyOf = (context: LoopContext, image: ImageValue): ImageValue => {
  const copy = newImage(context, image);
  copy.data.set(image.data);
  return copy;
};
