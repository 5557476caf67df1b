/**
 * How the positions of one side of the target are computed: each is the sum of `taps` source
 * positions by their weights.
 */
export type Axis = {
  readonly taps: number;
  readonly indices: Int32Array;
  readonly weights: Float64Array;
};

/** Makes the table for one side, from its source length to its target length. */
export type AxisOf = (source: number, target: number) => Axis;

type Tap = readonly [index: number, weight: number];

/** All positions get the same number of taps. Missing ones weigh nothing. */
export const axisOf = (target: number, tapsAt: (position: number) => readonly Tap[]): Axis => {
  const lists = Array.from({ length: target }, (_, position) => tapsAt(position));
  const taps = lists.reduce((most, { length }) => Math.max(most, length), 1);
  const indices = new Int32Array(target * taps);
  const weights = new Float64Array(target * taps);
  for (const [position, list] of lists.entries()) {
    for (const [tap, [index, weight]] of list.entries()) {
      indices[position * taps + tap] = index;
      weights[position * taps + tap] = weight;
    }
  }
  return { taps, indices, weights };
};

const range = (start: number, end: number): number[] =>
  Array.from({ length: end - start }, (_, i) => start + i);

/**
 * Takes the source position in which the centre of the target position is (v1's `nearest-exact`),
 * in single precision: at half-way points the rounding decides which one is taken.
 */
export const nearestAxis: AxisOf = (source, target) => {
  const scale = Math.fround(source / target);
  return axisOf(target, (i) => [
    [Math.min(source - 1, Math.floor(Math.fround((i + 0.5) * scale))), 1],
  ]);
};

/** Takes the mean of the whole source positions that the target position touches (v1's `area`). */
export const areaAxis: AxisOf = (source, target) =>
  axisOf(target, (i) => {
    const start = Math.floor((i * source) / target);
    const end = Math.ceil(((i + 1) * source) / target);
    return range(start, end).map((index) => [index, 1 / (end - start)]);
  });

const centreOf = (i: number, source: number, target: number): number =>
  ((i + 0.5) * source) / target - 0.5;

/** Draws straight lines between pixel centres, without antialiasing (v1's `bilinear`). */
export const bilinearAxis: AxisOf = (source, target) =>
  axisOf(target, (i) => {
    const at = Math.min(Math.max(0, centreOf(i, source, target)), source - 1);
    const first = Math.floor(at);
    return [
      [first, 1 - (at - first)],
      [Math.min(first + 1, source - 1), at - first],
    ];
  });

/** Uses cubic convolution over four pixels, without antialiasing (v1's `bicubic`). */
export const bicubicAxis: AxisOf = (source, target) =>
  axisOf(target, (i) => {
    const at = centreOf(i, source, target);
    const first = Math.floor(at) - 1;
    return range(first, first + 4).map((index) => [
      Math.min(Math.max(index, 0), source - 1),
      cubic(Math.abs(at - index)),
    ]);
  });

/** Cubic convolution (Keys) with a = -0.75. */
const cubic = (x: number): number => {
  if (x < 1) return (1.25 * x - 2.25) * x * x + 1;
  return x < 2 ? ((-0.75 * x + 3.75) * x - 6) * x + 3 : 0;
};

const LOBES = 3;

/** v1's library has weights in this unit. */
const UNIT = 2 ** 22;

/** Uses a windowed sinc, which is wider when the picture shrinks (v1's `lanczos`). */
export const lanczosAxis: AxisOf = (source, target) => {
  const stretch = Math.max(1, source / target);
  return axisOf(target, (i) => {
    const centre = ((i + 0.5) * source) / target;
    const start = Math.max(0, Math.trunc(centre - LOBES * stretch + 0.5));
    const end = Math.min(source, Math.trunc(centre + LOBES * stretch + 0.5));
    const taps = range(start, end).map(
      (index) => [index, lanczos((index - centre + 0.5) / stretch)] as const,
    );
    const sum = taps.reduce((total, [, weight]) => total + weight, 0);
    return taps.map(([index, weight]) => [index, Math.round((weight / sum) * UNIT) / UNIT]);
  });
};

const lanczos = (x: number): number => (Math.abs(x) < LOBES ? sinc(x) * sinc(x / LOBES) : 0);

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI));
