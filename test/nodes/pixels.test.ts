import { expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { casesFor, compareCase, runCase, worst } from '../support/graphs/pixels.ts';

/** Levels of 255 that every pixel may be off. */
const LEVELS = 2;

/** Two builds of a lossy encoder lose different details. */
const LOSSY = { name: 'animwebp_lossy', levels: 64, mean: 6 };

/** Ours differs on purpose: the original makes every 16-bit grey pixel white (load.test.ts, docs/differences.md). */
const MENDED = new Set(['load_gray16_png']);

const nodes = [...ALL_NODES.values()];

test.each(casesFor(nodes, [...ALL_NODES.keys()]).filter((row) => !MENDED.has(row.case)))(
  '$case: the saved pixels are those of the original server',
  async (row) => {
    const isLossy = row.case === LOSSY.name;
    const { max, mean, shapes } = worst(await compareCase(row, await runCase(row, nodes)));
    expect(shapes).toEqual([]);
    expect(max).toBeLessThanOrEqual(isLossy ? LOSSY.levels : LEVELS);
    expect(mean).toBeLessThanOrEqual(isLossy ? LOSSY.mean : LEVELS);
  },
);
