const { fround } = Math;

/** Square weights and the same thing taken apart: `gain` × profile × profile, plus `own` for the pixel itself. */
export type Kernel = {
  readonly side: number;
  /** `side` × `side`, row by row. */
  readonly weights: Float32Array;
  readonly profile: Float64Array;
  readonly gain: number;
  readonly own: number;
};

const LANES = 8;
const STREAMS = 4;
const BLOCK = 16;

/**
 * A sum in single precision in the order of the original's vector code: the rest that does not fill
 * eight lanes first, then lane by lane. The last bit of it decides whether white stays white when
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

/** One lane: four interleaved streams of blocks of sixteen; what is left over joins the first. */
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
 * v1's Gaussian: distances run from -1 to 1 over the whole kernel, so sigma is in units of the
 * radius.
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

/** Evenly from -1 to 1, each half counted from its own end. */
const placesOf = (side: number): Float32Array => {
  const step = fround(2 / (side - 1));
  return Float32Array.from({ length: side }, (_, i) =>
    i < side / 2 ? fround(step * i) - 1 : 1 - fround(step * (side - 1 - i)),
  );
};

/** The kernel that adds back what blurring takes away, `alpha` tenfold. */
export const sharpening = (blur: Kernel, alpha: number): Kernel => {
  const strength = fround(-alpha * 10);
  const weights = blur.weights.map((weight) => weight * strength);
  const sum = sumInLanes(weights);
  const centre = (weights.length - 1) / 2;
  weights[centre] = fround(fround((weights[centre] as number) - sum) + 1);
  return { ...blur, weights, gain: blur.gain * strength, own: 1 - sum };
};
