import { expect, test } from 'vitest';
import { refuseFolderNames } from '../../src/files/foreign-folders.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import type { V1Error } from '../../src/dialects/errors.ts';

test('a file of ones own is looked for among very many inputs in a moment', () => {
  const more = Object.fromEntries(Array.from({ length: 35 }, (_, i) => [`more${i}`, 1]));
  const node = { class_type: 'LoadImage', inputs: { image: 'a.png', ...more } };
  const ids = Array.from({ length: 10_000 }, (_, i) => `${i}`);
  const graph: Graph = Object.fromEntries(ids.map((id) => [id, node]));
  const place = { type: 'input', subfolder: '', filename: 'a.png' } as const;
  const found = { input: 'image', value: 'a.png', assetId: 'a', hash: null, ...place };
  const resolvedFiles = ids.map((nodeId) => ({ nodeId, ...found }));
  const beginMs = performance.now();
  refuseFolderNames({ graph, resolvedFiles, outputs: [] });
  expect(performance.now() - beginMs).toBeLessThan(5000);
});

test('a chain of foreign folders before very many outputs is refused in a moment', () => {
  const links = Array.from({ length: 5000 }, (_, i) => {
    const inputs = { image: 'holdover-0123456789abcdef/x.png', before: [`${i - 1}`, 0] };
    return [`${i}`, { class_type: 'LoadImage', inputs }] as const;
  });
  const outputs = Array.from({ length: 5000 }, (_, i) => `out ${i}`);
  const save = { class_type: 'SaveImage', inputs: { images: ['4999', 0] } };
  const graph: Graph = Object.fromEntries([...links, ...outputs.map((id) => [id, save] as const)]);
  const beginMs = performance.now();
  let error: unknown;
  try {
    refuseFolderNames({ graph, resolvedFiles: [], outputs });
  } catch (thrown) {
    error = thrown;
  }
  expect(performance.now() - beginMs).toBeLessThan(5000);
  const { node_errors: nodeErrors } = (error as V1Error).fault.localBody as unknown as {
    readonly node_errors: { readonly [id: string]: { readonly dependent_outputs: string[] } };
  };
  expect(Object.keys(nodeErrors)).toHaveLength(5000);
  // Each output is named by the failing node it takes values from, the first ones by all.
  expect(nodeErrors['4999']?.dependent_outputs).toEqual(outputs);
  expect(nodeErrors['0']?.dependent_outputs.slice(0, 20)).toEqual(outputs.slice(0, 20));
});

test('outputs that all depend on one node with very many inputs are refused in a moment', () => {
  const more = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`more${i}`, i]));
  const inputs = { image: 'holdover-0123456789abcdef/x.png', ...more };
  const save = { class_type: 'SaveImage', inputs: { images: ['large', 0] } };
  const outputs = Array.from({ length: 5000 }, (_, i) => `out ${i}`);
  const large = { class_type: 'LoadImage', inputs };
  const graph: Graph = { ...Object.fromEntries(outputs.map((id) => [id, save])), large };
  const beginMs = performance.now();
  expect(() => refuseFolderNames({ graph, resolvedFiles: [], outputs })).toThrow();
  expect(performance.now() - beginMs).toBeLessThan(5000);
});
