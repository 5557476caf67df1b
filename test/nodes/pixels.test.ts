import { expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { casesFor, compareCase, runCase, worst } from '../support/graphs/pixels.ts';
import type { PixelCase } from '../support/graphs/pixels.ts';

type Tolerance = { readonly max: number; readonly mean: number; readonly why: string };

const EXACT: Tolerance = { max: 0, mean: 0, why: 'same arithmetic, bit for bit' };

/** Levels of 255 that a case may be off, where a codec differs; whatever is not listed is exact. */
const TOLERANCES: { readonly [nameOfCase: string]: Tolerance } = {
  animwebp_lossy: {
    max: 64,
    mean: 6,
    why: 'quality 50: two builds of the encoder lose different details, each about 15 levels on average',
  },
};

const toleranceOf = (row: PixelCase): Tolerance => TOLERANCES[row.case] ?? EXACT;

/** Ours differs on purpose: the original makes every 16-bit grey pixel white (load.test.ts, docs/differences.md). */
const MENDED = new Set(['load_gray16_png']);

const nodes = [...ALL_NODES.values()];

test.each(casesFor(nodes, [...ALL_NODES.keys()]).filter((row) => !MENDED.has(row.case)))(
  '$case: the saved pixels are those of the original server',
  async (row) => {
    const tolerance = toleranceOf(row);
    const { max, mean, shapes } = worst(await compareCase(row, await runCase(row, nodes)));
    expect(shapes).toEqual([]);
    expect(max, tolerance.why).toBeLessThanOrEqual(tolerance.max);
    expect(mean, tolerance.why).toBeLessThanOrEqual(tolerance.mean);
  },
);
