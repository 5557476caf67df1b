import type { NodeContext } from '../node.ts';
import type { Reserver, Size } from '../tensor.ts';

/**
 * Two substances on a torus. Each array has a border of one cell on every side that repeats the
 * opposite edge, so that the inner loop has no special cases.
 */
export type Field = {
  readonly width: number;
  readonly height: number;
  readonly fed: Float32Array;
  readonly grown: Float32Array;
};

export type Rates = { readonly feed: number; readonly kill: number };

/**
 * The grown substance spreads half as fast as the fed one, which takes its neighbours' mean in
 * every time step.
 */
const GROWN_SPREAD = 0.5;

/** Smaller values become 0: spreading would lead to numbers that are slow to compute with. */
const LEAST_GROWN = 1e-12;

/** The number of cells for each seed spot. */
const CELLS_PER_SPOT = 2048;
const LEAST_SPOTS = 4;

/** Returns a field without any of the grown substance. */
export const emptyField = (context: Reserver, size: Size): Field => {
  const cells = (size.width + 2) * (size.height + 2);
  context.reserve(2 * cells * Float32Array.BYTES_PER_ELEMENT);
  return { ...size, fed: new Float32Array(cells).fill(1), grown: new Float32Array(cells) };
};

/** Adds round spots of the grown substance, in proportion to the area. */
export const addSpots = (field: Field, random: () => number): void => {
  const spots = Math.max(LEAST_SPOTS, Math.round((field.width * field.height) / CELLS_PER_SPOT));
  for (let spot = 0; spot < spots; spot++) {
    addSpot(field, random);
  }
};

const addSpot = ({ width, height, fed, grown }: Field, random: () => number): void => {
  const x = Math.floor(random() * width);
  const y = Math.floor(random() * height);
  const radius = 2 + Math.floor(random() * 5);
  const level = 0.25 + random() / 4;
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
const wrap = (cells: Float32Array, { width, height }: Size): void => {
  const stride = width + 2;
  for (let row = 1; row <= height; row++) {
    cells[row * stride] = cells[row * stride + width] as number;
    cells[row * stride + width + 1] = cells[row * stride + 1] as number;
  }
  cells.copyWithin(0, height * stride, (height + 1) * stride);
  cells.copyWithin((height + 1) * stride, stride, 2 * stride);
};

/**
 * Computes one time step of the Gray–Scott equations, from one field into another of the same size.
 */
export const react = (
  context: Pick<NodeContext, 'check'>,
  from: Field,
  to: Field,
  rates: Rates,
): void => {
  wrap(from.fed, from);
  wrap(from.grown, from);
  for (let row = 1; row <= from.height; row++) {
    context.check();
    reactRow(from, to, rates, row);
  }
};

/** Returns the part of the grown substance that neither spreads nor is removed. */
const keptOf = ({ feed, kill }: Rates): number => 1 - GROWN_SPREAD - feed - kill;

/**
 * Computes one row. In the mean of the neighbours each side counts a fifth, each corner a
 * twentieth. Sums of columns and middle cells are reused, so that every cell is read once for each
 * row. Levels are kept between 0 and 1, so that no rates can make the field diverge.
 */
const reactRow = ({ width, fed, grown }: Field, to: Field, rates: Rates, row: number): void => {
  const stride = width + 2;
  const { feed } = rates;
  const kept = keptOf(rates);
  const first = row * stride;
  let uWest = fed[first] as number;
  let u = fed[first + 1] as number;
  let uWestPair = aboveAndBelow(fed, first, stride);
  let uPair = aboveAndBelow(fed, first + 1, stride);
  let vWest = grown[first] as number;
  let v = grown[first + 1] as number;
  let vWestPair = aboveAndBelow(grown, first, stride);
  let vPair = aboveAndBelow(grown, first + 1, stride);
  for (let i = first + 1; i <= first + width; i++) {
    const uEast = fed[i + 1] as number;
    const uEastPair = (fed[i + 1 - stride] as number) + (fed[i + 1 + stride] as number);
    const vEast = grown[i + 1] as number;
    const vEastPair = (grown[i + 1 - stride] as number) + (grown[i + 1 + stride] as number);
    const uAround = 0.2 * (uWest + uEast + uPair) + 0.05 * (uWestPair + uEastPair);
    const vAround = 0.2 * (vWest + vEast + vPair) + 0.05 * (vWestPair + vEastPair);
    const reaction = u * v * v;
    const nextU = uAround - reaction + feed * (1 - u);
    const nextV = GROWN_SPREAD * vAround + reaction + kept * v;
    to.fed[i] = nextU < 0 ? 0 : nextU > 1 ? 1 : nextU;
    to.grown[i] = nextV < LEAST_GROWN ? 0 : nextV > 1 ? 1 : nextV;
    uWest = u;
    u = uEast;
    uWestPair = uPair;
    uPair = uEastPair;
    vWest = v;
    v = vEast;
    vWestPair = vPair;
    vPair = vEastPair;
  }
};

const aboveAndBelow = (cells: Float32Array, i: number, stride: number): number =>
  (cells[i - stride] as number) + (cells[i + stride] as number);
