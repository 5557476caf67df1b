import { type Pixels, type NodeContext, fail } from './node.ts';

export type Size = { readonly width: number; readonly height: number };

type Shape = Omit<Pixels, 'data'>;

/** True for pixels. A literal object or list of the workflow is a value, too. */
export const isPixels = (value: unknown): value is Pixels =>
  typeof value === 'object' &&
  value !== null &&
  'data' in value &&
  value.data instanceof Float32Array;

/**
 * Returns black pixels. Their memory is reserved within the job's limit. Sizes that come through
 * links were not checked before.
 */
export const newPixels = (
  context: NodeContext,
  { kind, batch, height, width, channels }: Shape,
): Pixels => {
  const sizes = [batch, height, width, channels];
  const negative = sizes.find((size) => size < 0);
  if (negative !== undefined)
    return fail('RuntimeError', `A size is negative: ${negative} of ${sizes.join(' × ')}`);
  const length = sizes.reduce((product, size) => product * size, 1);
  context.reserve(length * Float32Array.BYTES_PER_ELEMENT);
  return { kind, batch, height, width, channels, data: new Float32Array(length) };
};

/** Returns an empty mask for pictures of this size. */
export const newMask = (
  context: NodeContext,
  { batch, height, width }: Size & { readonly batch: number },
): Pixels => newPixels(context, { kind: 'mask', batch, height, width, channels: 1 });

/** Returns the pixels that these bytes of a file show, one frame for each picture of the batch. */
export const pixelsOfBytes = (
  context: NodeContext,
  shape: Shape,
  frames: readonly Uint8Array[],
): Pixels => {
  const pixels = newPixels(context, shape);
  for (const [index, bytes] of frames.entries()) {
    const levels = frameOf(pixels, index);
    for (let i = 0; i < bytes.length; i++) levels[i] = (bytes[i] as number) / 255;
  }
  return pixels;
};

/** Returns the mask of these levels. Between two rows a job can be stopped. */
export const maskOf = (
  context: NodeContext,
  shape: Pixels,
  levelAt: (pixel: number) => number,
): Pixels => {
  const mask = newMask(context, shape);
  for (let i = 0; i < mask.data.length; i++) {
    if (i % mask.width === 0) context.check();
    mask.data[i] = levelAt(i);
  }
  return mask;
};

/** Returns one picture of a batch as a view: a write to it changes the batch. */
export const frameOf = (value: Pixels, index: number): Float32Array => {
  const size = value.data.length / value.batch;
  return value.data.subarray(index * size, (index + 1) * size);
};

/**
 * Returns the bytes of one picture of the batch as v1 saves them: height × width × channels. Levels
 * are multiplied by 255 in single precision and clipped, and their fraction is cut off.
 */
export const toBytes = (image: Pixels, index: number): Uint8Array => {
  const levels = frameOf(image, index);
  const bytes = new Uint8Array(levels.length);
  for (let i = 0; i < levels.length; i++) {
    const level = Math.fround((levels[i] as number) * 255);
    bytes[i] = level >= 255 ? 255 : level > 0 ? level : 0;
  }
  return bytes;
};

/** Returns the level of a byte as v1 loads it: one 255th in single precision. */
export const levelOf = (byte: number): number => Math.fround(byte / 255);

/** Rounds half to even, as v1 does with sizes. */
export const roundHalfEven = (value: number): number => {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
};

/**
 * Returns the pixels with that many channels. Missing ones are added as opaque (1), as v1 pads
 * alpha.
 */
export const fillAlpha = (context: NodeContext, image: Pixels, channels: number): Pixels => {
  if (image.channels >= channels) return image;
  const filled = newPixels(context, { ...image, channels });
  filled.data.fill(1);
  const pixels = image.data.length / image.channels;
  for (let i = 0; i < pixels; i++) {
    for (let c = 0; c < image.channels; c++) {
      filled.data[i * channels + c] = image.data[i * image.channels + c] as number;
    }
  }
  return filled;
};

/** Visits the rows of all pictures of a batch. Between two rows a job can be stopped. */
export const eachRow = (
  context: NodeContext,
  { batch, height }: { readonly batch: number; readonly height: number },
  act: (row: number) => void,
): void => {
  for (let row = 0; row < batch * height; row++) {
    context.check();
    act(row);
  }
};
