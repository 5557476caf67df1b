const { fround } = Math;

/**
 * For each target position: the source taps and their weights, in the order they are summed. The
 * original's compiled loops start with the second tap, and single precision shows it.
 */
export type Axis = {
  readonly taps: number;
  readonly indices: Int32Array;
  readonly weights: Float32Array;
};

/** Makes the table that takes one side from its source length to its target length. */
export type Tapper = (source: number, target: number) => Axis;

const position = (i: number, scale: number): number => fround(scale * (i + 0.5) - 0.5);

const newAxis = (taps: number, target: number): Axis => ({
  taps,
  indices: new Int32Array(target * taps),
  weights: new Float32Array(target * taps),
});

/** Two taps: straight lines between pixel centres. */
export const linearAxis: Tapper = (source, target) => {
  const scale = fround(source / target);
  const axis = newAxis(2, target);
  for (let i = 0; i < target; i++) {
    const at = Math.max(0, position(i, scale));
    const first = Math.min(Math.floor(at), source - 1);
    const share = Math.min(fround(at - first), 1);
    axis.indices.set([Math.min(first + 1, source - 1), first], i * 2);
    axis.weights.set([share, 1 - share], i * 2);
  }
  return axis;
};

const CUBIC_STEPS = [0, -1, 1, 2] as const;

/** Four taps: cubic convolution. */
export const cubicAxis: Tapper = (source, target) => {
  const scale = fround(source / target);
  const axis = newAxis(4, target);
  for (let i = 0; i < target; i++) {
    const at = position(i, scale);
    const first = Math.floor(at);
    const share = fround(at - first);
    const weights = [
      innerWeight(share),
      outerWeight(share + 1),
      innerWeight(1 - share),
      outerWeight(fround(1 - share) + 1),
    ];
    for (const [tap, step] of CUBIC_STEPS.entries()) {
      axis.indices[i * 4 + tap] = Math.min(Math.max(first + step, 0), source - 1);
      axis.weights[i * 4 + tap] = weights[tap] as number;
    }
  }
  return axis;
};

/** Cubic convolution (Keys) with a = -0.75, for distances below 1. Every rounding counts. */
const innerWeight = (distance: number): number => {
  const x = fround(distance);
  return fround(fround(fround(1.25 * x - 2.25) * x) * x) + 1;
};

/** The same for distances from 1 to 2. */
const outerWeight = (distance: number): number => {
  const x = fround(distance);
  return fround(fround(fround(-0.75 * x + 3.75) * x - 6) * x) + 3;
};
