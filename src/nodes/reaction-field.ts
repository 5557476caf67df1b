import type { NodeContext } from './node.ts';
import { newImage } from './tensor.ts';
import type { RandomSource } from './reaction-random.ts';

/**
 * Two substances on a torus. Each array has a border of one cell on every side, which repeats the
 * opposite edge, so that the inner loop needs no case distinction.
 */
export type Field = {
  readonly width: number;
  readonly height: number;
  readonly fed: Float32Array;
  readonly grown: Float32Array;
};

export type Rates = { readonly feed: number; readonly kill: number };

/** Speeds of spreading; with these and a time step of 1 the scheme is stable. */
const FED_SPREAD = 1;
const GROWN_SPREAD = 0.5;

/** One seed spot for about so many cells. */
const CELLS_PER_SPOT = 2048;
const LEAST_SPOTS = 4;

type Sides = { readonly width: number; readonly height: number };

/** A field without any of the growing substance. */
export const emptyField = (
  context: Pick<NodeContext, 'reserve'>,
  { width, height }: Sides,
): Field => {
  const shape = { batch: 1, width: width + 2, height: height + 2, channels: 1 };
  const fed = newImage(context, shape).data.fill(1);
  return { width, height, fed, grown: newImage(context, shape).data };
};

/** Strews round spots of the growing substance, as many as the area asks for. */
export const sowSpots = (field: Field, random: RandomSource): void => {
  const spots = Math.max(LEAST_SPOTS, Math.round((field.width * field.height) / CELLS_PER_SPOT));
  for (let spot = 0; spot < spots; spot++) {
    const x = Math.floor(random() * field.width);
    const y = Math.floor(random() * field.height);
    sowSpot(field, { x, y, radius: 2 + Math.floor(random() * 5), level: 0.25 + random() / 4 });
  }
};

type Spot = {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
  readonly level: number;
};

const sowSpot = ({ width, height, fed, grown }: Field, { x, y, radius, level }: Spot): void => {
  const span = 2 * radius + 1;
  for (let i = 0; i < span * span; i++) {
    const [dx, dy] = [(i % span) - radius, Math.floor(i / span) - radius];
    if (dx * dx + dy * dy > radius * radius) continue;
    const row = ((y + dy + height) % height) + 1;
    const cell = row * (width + 2) + ((x + dx + width) % width) + 1;
    fed[cell] = 0.5;
    grown[cell] = level;
  }
};

/** Makes the border repeat the opposite edges. */
const wrap = (cells: Float32Array, { width, height }: Sides): void => {
  const stride = width + 2;
  for (let row = 1; row <= height; row++) {
    cells[row * stride] = cells[row * stride + width] as number;
    cells[row * stride + width + 1] = cells[row * stride + 1] as number;
  }
  cells.copyWithin(0, height * stride, (height + 1) * stride);
  cells.copyWithin((height + 1) * stride, stride, 2 * stride);
};

/** One time step of the Gray–Scott equations from one field into another of the same size. */
export const react = (
  context: Pick<NodeContext, 'check'>,
  from: Field,
  { to, rates }: { readonly to: Field; readonly rates: Rates },
): void => {
  wrap(from.fed, from);
  wrap(from.grown, from);
  for (let row = 1; row <= from.height; row++) {
    context.check();
    reactRow(from, { to, rates, row });
  }
};

type RowTask = { readonly to: Field; readonly rates: Rates; readonly row: number };

/** Kept between 0 and 1, so that no rates, however wild, can make the field run away. */
const reactRow = (
  { width, fed, grown }: Field,
  { to, rates: { feed, kill }, row }: RowTask,
): void => {
  const stride = width + 2;
  const loss = feed + kill;
  for (let i = row * stride + 1; i <= row * stride + width; i++) {
    const u = fed[i] as number;
    const v = grown[i] as number;
    const reaction = u * v * v;
    const nextU = u + FED_SPREAD * (around(fed, i, stride) - u) - reaction + feed * (1 - u);
    const nextV = v + GROWN_SPREAD * (around(grown, i, stride) - v) + reaction - loss * v;
    to.fed[i] = nextU < 0 ? 0 : nextU > 1 ? 1 : nextU;
    to.grown[i] = nextV < 0 ? 0 : nextV > 1 ? 1 : nextV;
  }
};

/** Weighted mean of the eight neighbours: a fifth for each side, a twentieth for each corner. */
const around = (cells: Float32Array, i: number, stride: number): number =>
  0.2 *
    ((cells[i - 1] as number) +
      (cells[i + 1] as number) +
      (cells[i - stride] as number) +
      (cells[i + stride] as number)) +
  0.05 *
    ((cells[i - stride - 1] as number) +
      (cells[i - stride + 1] as number) +
      (cells[i + stride - 1] as number) +
      (cells[i + stride + 1] as number));
