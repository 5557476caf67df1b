import { type ImageValue, NodeFailure } from '../node.ts';
import { type LoopContext, eachRow, newImage } from '../tensor.ts';

const { fround } = Math;

/**
 * Square weights, and their factors: `gain` × profile × profile, plus `own` for the pixel itself.
 */
type Kernel = {
  readonly side: number;
  /** `side` × `side` weights, row by row. */
  readonly weights: Float32Array;
  readonly profile: Float64Array;
  readonly gain: number;
  readonly own: number;
};

const LANES = 8;
const STREAMS = 4;
const BLOCK = 16;

/**
 * Returns a sum in single precision, in the order of the original's vector code: first the values
 * that do not fill eight lanes, then lane by lane. Its last bit decides if white stays white when
 * saved.
 */
const sumInLanes = (values: Float32Array): number => {
  const rows = Math.floor(values.length / LANES);
  let sum = 0;
  for (let i = rows * LANES; i < values.length; i++) sum = fround(sum + (values[i] as number));
  for (let lane = 0; lane < LANES; lane++) {
    const column = values.filter((_, i) => i % LANES === lane && i < rows * LANES);
    sum = fround(sum + sumOfColumn(column));
  }
  return sum;
};

/**
 * Sums one lane: four interleaved streams of blocks of sixteen. The remaining values join the first
 * stream.
 */
const sumOfColumn = (column: Float32Array): number => {
  const even = Math.floor(column.length / STREAMS) * STREAMS;
  const [open, closed] = [new Float32Array(STREAMS), new Float32Array(STREAMS)];
  for (let i = 0; i < even; i++) {
    const stream = i % STREAMS;
    open[stream] = (open[stream] as number) + (column[i] as number);
    if (Math.floor(i / STREAMS) % BLOCK !== BLOCK - 1) continue;
    closed[stream] = (closed[stream] as number) + (open[stream] as number);
    open[stream] = 0;
  }
  const streams = open.map((value, i) => value + (closed[i] as number));
  for (const rest of column.subarray(even)) streams[0] = (streams[0] as number) + rest;
  return streams.reduce((sum, value) => fround(sum + value));
};

/**
 * Returns v1's Gaussian. Distances run from -1 to 1 over the whole kernel, so sigma is in units of
 * the radius.
 */
export const gaussian = (radius: number, sigma: number): Kernel => {
  const side = 2 * radius + 1;
  const places = placesOf(side);
  const width = fround(2 * sigma * sigma);
  const weights = new Float32Array(side * side);
  for (let i = 0; i < weights.length; i++) {
    const [x, y] = [places[i % side] as number, places[Math.floor(i / side)] as number];
    const distance = fround(Math.sqrt(fround(fround(x * x) + fround(y * y))));
    weights[i] = Math.exp(fround(-fround(distance * distance) / width));
  }
  const sum = sumInLanes(weights);
  const profile = Float64Array.from(places, (x) => Math.exp(-(x * x) / width));
  return { side, weights: weights.map((weight) => weight / sum), profile, gain: 1 / sum, own: 0 };
};

/** Returns places evenly from -1 to 1, each half counted from its own end. */
const placesOf = (side: number): Float32Array => {
  const step = fround(2 / (side - 1));
  return Float32Array.from({ length: side }, (_, i) =>
    i < side / 2 ? fround(step * i) - 1 : 1 - fround(step * (side - 1 - i)),
  );
};

/** Returns the kernel that adds `alpha` times ten of the part that blurring removes. */
export const sharpening = (blur: Kernel, alpha: number): Kernel => {
  const strength = fround(-alpha * 10);
  const weights = blur.weights.map((weight) => weight * strength);
  const sum = sumInLanes(weights);
  const centre = (weights.length - 1) / 2;
  weights[centre] = fround(fround((weights[centre] as number) - sum) + 1);
  return { ...blur, weights, gain: blur.gain * strength, own: 1 - sum };
};

/**
 * Up to this many products (about two seconds) every weight is applied; above, rows and columns
 * separately.
 */
const DIRECT_PRODUCTS = 1e9;

type Convolution = (context: LoopContext, image: ImageValue, kernel: Kernel) => ImageValue;

/**
 * Weighs the neighbourhood of every pixel. It is mirrored at the borders, without repeating the
 * edge pixel.
 */
export const convolve: Convolution = (context, image, kernel) => {
  const radius = (kernel.side - 1) / 2;
  if (radius >= image.width || radius >= image.height) {
    const wanted = `a picture larger than ${radius} pixels on both sides`;
    const size = `${image.width} × ${image.height}`;
    const message = `A radius of ${radius} needs ${wanted}; this one is ${size}`;
    throw new NodeFailure('RuntimeError', message);
  }
  const products = image.data.length * kernel.weights.length;
  return products <= DIRECT_PRODUCTS
    ? convolveDirectly(context, image, kernel)
    : convolveSeparably(context, image, kernel);
};

/**
 * Makes every product in the original's order: equal to the last bit.
 * @internal
 */
export const convolveDirectly: Convolution = (context, image, kernel) => {
  const result = newImage(context, image);
  eachRow(context, image, (row) => convolveRow(image, result, kernel, row));
  return result;
};

type RowPass = (from: ImageValue, to: ImageValue, kernel: Kernel, row: number) => void;

const convolveRow: RowPass = (image, result, kernel, row) => {
  const { width, height, channels } = image;
  const radius = (kernel.side - 1) / 2;
  const top = Math.floor(row / height) * height;
  const target = result.data.subarray(row * width * channels, (row + 1) * width * channels);
  const line = new Float32Array((width + 2 * radius) * channels);
  for (let ky = 0; ky < kernel.side; ky++) {
    const y = reflect((row % height) + ky - radius, height);
    mirrorLine(image, line, (top + y) * width * channels, radius);
    for (let kx = 0; kx < kernel.side; kx++) {
      const weight = kernel.weights[ky * kernel.side + kx] as number;
      const shift = kx * channels;
      for (let i = 0; i < target.length; i++) {
        target[i] = (line[i + shift] as number) * weight + (target[i] as number);
      }
    }
  }
};

const reflect = (i: number, length: number): number => {
  if (i < 0) return -i;
  return i < length ? i : 2 * (length - 1) - i;
};

const mirrorLine = (
  { width, channels, data }: ImageValue,
  line: Float32Array,
  from: number,
  radius: number,
): void => {
  line.set(data.subarray(from, from + width * channels), radius * channels);
  for (let x = 1; x <= radius; x++) {
    for (let c = 0; c < channels; c++) {
      line[(radius - x) * channels + c] = data[from + x * channels + c] as number;
      line[(radius + width - 1 + x) * channels + c] = data[
        from + (width - 1 - x) * channels + c
      ] as number;
    }
  }
};

/**
 * Convolves rows, then columns: the same picture except for rounding, with a fraction of the work.
 * White is forced to the result of the direct way; otherwise plain white would fall by one level
 * when saved.
 * @internal
 */
export const convolveSeparably: Convolution = (context, image, kernel) => {
  const wide = newImage(context, image);
  const result = newImage(context, image);
  const flat = kernel.profile.reduce((sum, weight) => sum + weight, 0) ** 2;
  const white = kernel.weights.reduce((sum, weight) => Math.fround(sum + weight), 0);
  const parts = { ...kernel, gain: (white - kernel.own) / flat };
  eachRow(context, image, (row) => blurAcross(image, wide, parts, row));
  eachRow(context, image, (row) => blurDown([image, wide], result, parts, row));
  return result;
};

const blurAcross: RowPass = (image, result, kernel, row) => {
  const radius = (kernel.side - 1) / 2;
  const { width, channels } = image;
  const line = new Float32Array((width + 2 * radius) * channels);
  mirrorLine(image, line, row * width * channels, radius);
  for (let i = 0; i < width * channels; i++) {
    let sum = 0;
    for (let k = 0; k < kernel.side; k++) {
      sum += (line[i + k * channels] as number) * (kernel.profile[k] as number);
    }
    result.data[row * width * channels + i] = sum;
  }
};

const blurDown = (
  [image, wide]: readonly [ImageValue, ImageValue],
  result: ImageValue,
  kernel: Kernel,
  row: number,
): void => {
  const radius = (kernel.side - 1) / 2;
  const length = image.width * image.channels;
  const top = Math.floor(row / image.height) * image.height;
  const sums = new Float64Array(length);
  for (let k = 0; k < kernel.side; k++) {
    const from = (top + reflect((row % image.height) + k - radius, image.height)) * length;
    const weight = kernel.profile[k] as number;
    for (let i = 0; i < length; i++) {
      sums[i] = (sums[i] as number) + (wide.data[from + i] as number) * weight;
    }
  }
  for (let i = 0; i < length; i++) {
    const itself = kernel.own * (image.data[row * length + i] as number);
    result.data[row * length + i] = (sums[i] as number) * kernel.gain + itself;
  }
};
