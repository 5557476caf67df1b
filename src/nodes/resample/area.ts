import type { ImageValue } from '../node.ts';
import type { ResampleContext, Size } from './resample.ts';
import { newImage } from '../tensor.ts';

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
  for (let row = 0; row < scaled.batch * scaled.height; row++) {
    context.check();
    const top = Math.floor(row / size.height) * image.height;
    const { start, end } = rows[row % size.height] as Window;
    const target = scaled.data.subarray(row * size.width * image.channels);
    averageRow({ image, target, columns, top: top + start, bottom: top + end });
  }
  return scaled;
};

const windows = (source: number, target: number): readonly Window[] =>
  Array.from({ length: target }, (_, i) => ({
    start: Math.floor((i * source) / target),
    end: Math.ceil(((i + 1) * source) / target),
  }));

type RowTask = {
  readonly image: ImageValue;
  readonly target: Float32Array;
  readonly columns: readonly Window[];
  readonly top: number;
  readonly bottom: number;
};

const averageRow = ({ image, target, columns, top, bottom }: RowTask): void => {
  const { channels } = image;
  for (let x = 0; x < columns.length; x++) {
    const { start, end } = columns[x] as Window;
    for (let c = 0; c < channels; c++) {
      const first = (top * image.width + start) * channels + c;
      const sum = sumOver(image, { first, columns: end - start, rows: bottom - top });
      // Two divisions, each rounded to single precision, as the original's pooling does.
      target[x * channels + c] = Math.fround(sum / (bottom - top)) / (end - start);
    }
  }
};

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
