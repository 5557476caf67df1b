import type { ImageValue } from '../node.ts';
import type { ResampleContext, Size } from './resample-context.ts';
import { eachRow, newImage } from '../tensor.ts';

/** Every target pixel takes the source pixel its centre falls into (v1's `nearest-exact`). */
export const resampleNearest = (
  context: ResampleContext,
  image: ImageValue,
  size: Size,
): ImageValue => {
  const scaled = newImage(context, { ...image, ...size });
  const columns = nearestIndices(image.width, size.width);
  const rows = nearestIndices(image.height, size.height);
  const { channels } = image;
  eachRow(context, scaled, (row) => {
    const sourceRow =
      Math.floor(row / size.height) * image.height + (rows[row % size.height] as number);
    for (let x = 0; x < size.width; x++) {
      const from = (sourceRow * image.width + (columns[x] as number)) * channels;
      const to = (row * size.width + x) * channels;
      for (let c = 0; c < channels; c++) scaled.data[to + c] = image.data[from + c] as number;
    }
  });
  return scaled;
};

/** Single precision throughout: at half-way points the rounding decides which pixel is taken. */
const nearestIndices = (source: number, target: number): Int32Array => {
  const scale = Math.fround(source / target);
  return Int32Array.from({ length: target }, (_, i) =>
    Math.min(source - 1, Math.floor(Math.fround((i + 0.5) * scale))),
  );
};
