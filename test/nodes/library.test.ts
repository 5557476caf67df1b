import { expect, test } from 'vitest';
import { ALL_NODES } from '../../src/nodes/library.ts';
import { recordedJson, runGraph } from '../support/graphs/node-graph.ts';
import { pixelCases } from '../support/graphs/pixels.ts';

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

test.each(CASES.map((row) => row.case))('%s shows what was recorded', async (name) => {
  const { ui } = await runGraph(name, [...ALL_NODES.values()]);
  expect(ui).toEqual((recordedJson(name, 'outputs.json') as { outputs: unknown }).outputs);
});
