import type { ImageValue } from '../node.ts';
import type { ResampleContext, Size } from './resample-context.ts';
import { eachRow, newImage } from '../tensor.ts';

type Window = { readonly start: number; readonly end: number };

/** Every target pixel is the mean of the whole source pixels it touches (v1's `area`). */
export const resampleArea = (
  context: ResampleContext,
  image: ImageValue,
  size: Size,
): ImageValue => {
  const scaled = newImage(context, { ...image, ...size });
  const columns = windows(image.width, size.width);
  const rows = windows(image.height, size.height);
  const { channels } = image;
  eachRow(context, scaled, (row) => {
    const top = Math.floor(row / size.height) * image.height;
    const { start, end } = rows[row % size.height] as Window;
    const height = end - start;
    for (let i = 0; i < size.width * channels; i++) {
      const column = columns[Math.floor(i / channels)] as Window;
      const width = column.end - column.start;
      const first = ((top + start) * image.width + column.start) * channels + (i % channels);
      const sum = sumOver(image, { first, columns: width, rows: height });
      // Two divisions, each rounded to single precision, as the original's pooling does.
      scaled.data[row * size.width * channels + i] = Math.fround(sum / height) / width;
    }
  });
  return scaled;
};

const windows = (source: number, target: number): readonly Window[] =>
  Array.from({ length: target }, (_, i) => ({
    start: Math.floor((i * source) / target),
    end: Math.ceil(((i + 1) * source) / target),
  }));

type Patch = { readonly first: number; readonly columns: number; readonly rows: number };

const sumOver = (
  { data, width, channels }: ImageValue,
  { first, columns, rows }: Patch,
): number => {
  let sum = 0;
  for (let y = 0; y < rows; y++) {
    const start = first + y * width * channels;
    for (let i = start; i < start + columns * channels; i += channels) {
      sum = Math.fround(sum + (data[i] as number));
    }
  }
  return sum;
};
