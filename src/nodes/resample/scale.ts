import type { NodeContext } from '../node.ts';
import type { Size } from '../tensor.ts';
import type { Axis } from './axis.ts';

/** One picture: rows × columns × channels. */
export type Picture<Data extends Float32Array | Uint8Array = Float32Array | Uint8Array> = Size & {
  readonly channels: number;
  readonly data: Data;
};

/** Scales rows into a target of the same height. Between two rows a job can be stopped. */
export const scaleRows = (
  context: NodeContext,
  source: Picture,
  target: Picture,
  { taps, indices, weights }: Axis,
): void => {
  const { channels } = source;
  const offsets = indices.map((index) => index * channels);
  const line = new Float64Array(source.width * channels);
  const sums = new Float64Array(target.width * channels);
  for (let y = 0; y < source.height; y++) {
    context.check();
    line.set(source.data.subarray(y * line.length, (y + 1) * line.length));
    for (let to = 0, tap = 0; to < sums.length; tap += taps) {
      for (let c = 0; c < channels; c++, to++) {
        let sum = 0;
        for (let i = tap; i < tap + taps; i++) {
          sum += (line[(offsets[i] as number) + c] as number) * (weights[i] as number);
        }
        sums[to] = sum;
      }
    }
    target.data.set(levelsFor(target, sums), y * sums.length);
  }
};

/** Scales columns into a target of the same width. */
export const scaleColumns = (
  context: NodeContext,
  source: Picture,
  target: Picture,
  { taps, indices, weights }: Axis,
): void => {
  const { data } = source;
  const sums = new Float64Array(source.width * source.channels);
  for (let y = 0; y < target.height; y++) {
    context.check();
    sums.fill(0);
    for (let tap = y * taps; tap < (y + 1) * taps; tap++) {
      const weight = weights[tap] as number;
      const row = (indices[tap] as number) * sums.length;
      for (let i = 0; i < sums.length; i++) {
        sums[i] = (sums[i] as number) + (data[row + i] as number) * weight;
      }
    }
    target.data.set(levelsFor(target, sums), y * sums.length);
  }
};

/** Rounds bytes, halves up as v1 does. Where alpha is low, one level more or less is visible later. */
const levelsFor = ({ data }: Picture, sums: Float64Array): Float64Array =>
  data instanceof Uint8Array
    ? sums.map((sum) => Math.min(255, Math.max(0, Math.floor(sum + 0.5))))
    : sums;
