import { LRUCache } from 'lru-cache';
import type { Size } from '../tensor.ts';

const LOBES = 3;

/** Weights are fixed-point numbers with this many fractional bits. */
export const PRECISION_BITS = 22;
export const PRECISION = 2 ** PRECISION_BITS;

/** The bytes of one picture: rows × columns × channels. */
export type Bytes = Size & { readonly channels: number; readonly data: Uint8Array };

/**
 * Fixed-point weights. Each target position has `reach` weights, from source position `first` on.
 */
export type Taps = {
  readonly first: Int32Array;
  readonly weights: Int32Array;
  readonly reach: number;
};

/** A cache: the frames of a batch, both sides of a square, and successive jobs scale alike. */
const known = new LRUCache<string, Taps>({ max: 16 });

/** Returns a windowed sinc, which is wider when the picture shrinks. */
export const lanczosTaps = (source: number, target: number): Taps => {
  const name = `${source} ${target}`;
  const taps = known.get(name) ?? makeTaps(source, target);
  known.set(name, taps);
  return taps;
};

const makeTaps = (source: number, target: number): Taps => {
  const scale = source / target;
  const stretch = Math.max(1, scale);
  const windows = Array.from({ length: target }, (_unused, i) => {
    const centre = (i + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - LOBES * stretch + 0.5));
    const end = Math.min(source, Math.trunc(centre + LOBES * stretch + 0.5));
    return { centre, start, end };
  });
  const reach = windows.reduce((most, { start, end }) => Math.max(most, end - start), 1);
  const first = new Int32Array(target);
  const weights = new Int32Array(target * reach);
  for (const [i, { centre, start, end }] of windows.entries()) {
    const raw = Array.from({ length: end - start }, (_unused, x) =>
      lanczos((x + start - centre + 0.5) / stretch),
    );
    const sum = raw.reduce((total, weight) => total + weight, 0);
    // All positions have the same number of weights. Unneeded ones are zero and come first.
    first[i] = Math.max(0, end - reach);
    const skipped = start - (first[i] as number);
    for (const [k, weight] of raw.entries()) {
      const fixed = Math.round(Math.abs(weight / sum) * PRECISION) * Math.sign(weight / sum);
      weights[i * reach + skipped + k] = fixed;
    }
  }
  return { first, weights, reach };
};

const lanczos = (x: number): number => (x >= -LOBES && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0);

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI));
