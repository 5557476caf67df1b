import type { NodeContext } from '../node.ts';
import type { Size } from '../tensor.ts';

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
export const emptyField = (context: NodeContext, size: Size): Field => {
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
export const react = (context: NodeContext, from: Field, to: Field, rates: Rates): void => {
  wrap(from.fed, from);
  wrap(from.grown, from);
  for (let row = 1; row <= from.height; row++) {
    context.check();
    reactRow(from, to, rates, row);
  }
};

/**
 * Computes one row. Levels are kept between 0 and 1, so that no rates can make the field diverge.
 */
const reactRow = (from: Field, to: Field, { feed, kill }: Rates, row: number): void => {
  // Read once: fields of many shapes would make each access in the loop slow.
  const { fed, grown, width } = from;
  const { fed: toFed, grown: toGrown } = to;
  const stride = width + 2;
  const kept = 1 - GROWN_SPREAD - feed - kill;
  for (let i = row * stride + 1; i <= row * stride + width; i++) {
    const fedHere = fed[i] as number;
    const grownHere = grown[i] as number;
    const reaction = fedHere * grownHere * grownHere;
    const nextFed = meanAround(fed, i, stride) - reaction + feed * (1 - fedHere);
    const spread = GROWN_SPREAD * meanAround(grown, i, stride);
    const nextGrown = spread + reaction + kept * grownHere;
    toFed[i] = toLevel(nextFed);
    toGrown[i] = nextGrown < LEAST_GROWN ? 0 : toLevel(nextGrown);
  }
};

/** Keeps a level between 0 and 1. With `Math.min` and `Math.max` a step takes a third longer. */
const toLevel = (value: number): number => {
  if (value > 1) return 1;
  return value < 0 ? 0 : value;
};

/** Returns the mean of the neighbours: each side counts a fifth, each corner a twentieth. */
const meanAround = (cells: Float32Array, i: number, stride: number): number => {
  const above = i - stride;
  const below = i + stride;
  const sides = pairAt(cells, i - 1, i + 1) + pairAt(cells, above, below);
  const corners = pairAt(cells, above - 1, above + 1) + pairAt(cells, below - 1, below + 1);
  return 0.2 * sides + 0.05 * corners;
};

const pairAt = (cells: Float32Array, one: number, other: number): number =>
  (cells[one] as number) + (cells[other] as number);
