import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { recordedFile, recordedJson, runGraph } from '../support/graphs/node-graph.ts';
import { pixelCases } from '../support/graphs/pixels.ts';

/** Levels a decoder of lossy files, or a resampler of another library, may be off. */
const TOLERANCE: { readonly [name: string]: number } = {
  load_exif6_jpg: 2,
  load_plain_jpg: 2,
  load_still_webp: 2,
  primitive_float: 1,
};

/** 16-bit grey loads as white in the original (load.test.ts says what we do); identical nodes run once, but not here. */
const OTHER_NODES: readonly string[] = ['load_gray16_png', 'prefix_counter'];

const CASES = pixelCases()
  .filter(({ case: name }) => /^(load|empty_|primitive_|prefix_)/.test(name))
  .filter(({ case: name }) => !OTHER_NODES.includes(name));

test('the library has every class that was recorded', () => {
  const recorded = new Set(pixelCases().flatMap(({ classes }) => classes));
  expect([...recorded].filter((name) => !ALL_NODES.has(name))).toEqual([]);
});

test('every file input is an input of its class', () => {
  const strays = [...ALL_NODES.values()].filter(({ fileInputs = [], required }) =>
    fileInputs.some((name) => !(name in required)),
  );
  expect(strays).toEqual([]);
});

describe('recorded graphs that load and save give the recorded files', () => {
  test.each(CASES.map((row) => row.case))('%s', async (name) => {
    const { saved, ui } = await runGraph(name, [...ALL_NODES.values()]);
    expect(ui).toEqual((recordedJson(name, 'outputs.json') as { outputs: unknown }).outputs);
    const differences = await Promise.all(
      saved.map((file) => farthest(file.bytes, recordedFile(name, 'outputs', file.name))),
    );
    expect(Math.max(...differences)).toBeLessThanOrEqual(TOLERANCE[name] ?? 0);
  });
});

/** Greatest difference in levels; pictures of different shapes are 999 apart. */
async function farthest(ours: Uint8Array, theirs: Uint8Array): Promise<number> {
  const [a, b] = [await raw(ours), await raw(theirs)];
  if (a.shape !== b.shape) return 999;
  return a.data.reduce((worst, level, i) => Math.max(worst, Math.abs(level - (b.data[i] ?? 0))), 0);
}

async function raw(bytes: Uint8Array): Promise<{ shape: string; data: Uint8Array }> {
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  return { shape: `${info.width}x${info.height}x${info.channels}`, data };
}
